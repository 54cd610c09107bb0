import { type Conversation, ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../console-context.ts'
import { authorName } from '../conversation/messages/messages.ts'
import { Avatar, presenceWords, VerifiedMark } from '../ui/avatar.tsx'
import { Waiting, When } from '../ui/page.tsx'
import { isUnread, isWaiting, visitorName } from './conversation-record.ts'

/** The tags of a conversation that each list shows. */
export function StatusTags({ conversation }: { conversation: Conversation }) {
  const { status, rating, agent, assignedOperatorId } = conversation
  const isMine = assignedOperatorId === useConsole().session.operator
  return (
    <>
      {status === ConversationStatus.CLOSED && <span class="tag">Closed</span>}
      {status === ConversationStatus.CLOSED && rating !== undefined && <span class="tag">Rated {rating}/5</span>}
      {agent && <span class="tag">{isMine ? 'Mine' : agent.displayName}</span>}
    </>
  )
}

export function ConversationRow({ conversation, open }: { conversation: Conversation; open: boolean }) {
  const { inbox, outbox, router, session } = useConsole()
  const { conversationId, lastMessage, lastMessageAt, waitingSince, visitor, tags } = conversation
  const name = visitorName(conversation)
  const unread = isUnread(conversation)
  const unsent = outbox.markOf(conversationId)
  const presence = inbox.presenceOf(conversationId)
  const verified = visitor?.identityState === 'verified'
  const preview = lastMessage?.redactedAt ? 'Message withdrawn' : (lastMessage?.body ?? 'Submitted a form')
  const from = authorName(lastMessage?.author, session.displayName)
  return (
    <li>
      <a
        class={unread ? 'row unread' : 'row'}
        href={router.inFilter({ conversationId })}
        aria-current={open ? 'true' : undefined}
      >
        <Avatar name={name} id={conversationId} presence={presence} />
        <span class="row-text">
          <span class="row-top">
            <span class="row-name name-line">
              <bdi class="ellipsis">{name}</bdi> {verified && <VerifiedMark />}
              {presenceWords[presence] && <span class="visually-hidden">, {presenceWords[presence]}</span>}
            </span>
            {waitingSince ? <Waiting since={waitingSince} /> : <When at={lastMessageAt} />}
          </span>
          <span class="row-bottom">
            {!inbox.typing.value.has(conversationId) ? (
              // Right-to-left text is truncated at its end.
              <span class="row-preview ellipsis" dir={from ? undefined : 'auto'}>
                {from && <span class="row-from">{from}: </span>}
                {from ? <bdi>{preview}</bdi> : preview}
              </span>
            ) : (
              <span class="row-preview ellipsis typing">is typing…</span>
            )}
            {unsent && <span class="tag warn">{unsent === 'sending' ? 'Sending…' : 'Not sent'}</span>}
            {isWaiting(conversation) && <span class="tag warn">Wants a person</span>}
            <StatusTags conversation={conversation} />
            {unread && (
              <span class="unread-mark">
                <span class="visually-hidden">unread</span>
              </span>
            )}
          </span>
          {tags.length > 0 && (
            <span class="row-labels ellipsis" dir="auto">
              <span class="visually-hidden">Tags: </span>
              {tags.join(' · ')}
            </span>
          )}
        </span>
      </a>
    </li>
  )
}
