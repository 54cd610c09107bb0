import type { Message, Note } from '#proto/messaging/v1/messaging_pb.js'
import { linkify } from '../../../../browser/chat/linkify.ts'
import { useConsole } from '../../console-context.ts'
import { millisecondsOf } from '../../time.ts'
import { DialogButton } from '../../ui/dialog.tsx'
import { Button, When } from '../../ui/page.tsx'
import type { OutgoingMessage } from '../composer/outbox.ts'
import type { Thread } from '../thread.ts'
import { authorName, stateText } from './messages.ts'

/** Shows plain text with links. The links send no referrer. */
function MessageText({ text }: { text: string }) {
  return (
    <>
      {linkify(text).map((part, index) =>
        part.href === undefined ? (
          part.text
        ) : (
          <a
            key={`${index} ${part.href}`}
            href={part.href}
            target={part.href.startsWith('http') ? '_blank' : undefined}
            rel="noopener noreferrer nofollow"
          >
            {part.text}
          </a>
        ),
      )}
    </>
  )
}

interface MessageItemProps {
  thread: Thread
  name: string
  message: Message
  before: Message | undefined
  after: Message | undefined
  isFound: boolean
}

/** Time within which messages of one author form a group. */
const groupMs = 300_000

export function MessageItem({ message, before, after, name, thread, isFound }: MessageItemProps) {
  const me = useConsole().session.displayName
  const kind = message.author?.kind ?? 'system'
  const author = headOf(message, name, me)
  const isGroup = (one: Message | undefined, next: Message | undefined) =>
    one !== undefined &&
    next !== undefined &&
    headOf(one, name, me) === headOf(next, name, me) &&
    one.author?.kind === next.author?.kind &&
    millisecondsOf(next.createdAt) - millisecondsOf(one.createdAt) < groupMs
  const continues = isGroup(before, message)
  // Shown below the last message of a group, and of each state in it.
  const showsFoot = !isGroup(message, after) || (after !== undefined && stateText(after) !== stateText(message))
  return (
    <li
      class={`message ${kind === 'bot' ? 'agent bot' : kind}${continues ? ' continues' : ''}${isFound ? ' found' : ''}`}
      tabIndex={isFound ? -1 : undefined}
    >
      <div class="message-head">{author}</div>
      {message.redactedAt ? (
        <div class="bubble withdrawn">Message withdrawn</div>
      ) : (
        <div class="bubble-line">
          <div class="bubble" dir="auto" lang={message.locale} aria-busy={message.growing || undefined}>
            <MessageText text={message.body} />
          </div>
          <WithdrawButton message={message} thread={thread} />
        </div>
      )}
      {message.quickReplies.length > 0 && (
        <ul class="quick-replies" aria-label="Quick replies">
          {message.quickReplies.map((text) => (
            <li key={text} class="tag" dir="auto">
              {text}
            </li>
          ))}
        </ul>
      )}
      {showsFoot && (
        <div class="message-foot">
          <When at={message.createdAt} timeOnly />
          <span class="message-state">{message.growing ? 'Writing…' : stateText(message)}</span>
        </div>
      )}
    </li>
  )
}

interface OutgoingItemProps {
  message: OutgoingMessage
  thread: Thread
  addToReply: (text: string) => void
}

export function OutgoingItem({ message, thread, addToReply }: OutgoingItemProps) {
  const { operationId, state, failure, isSent } = message

  return (
    <li class={`message agent outgoing ${state}`}>
      {!isSent && (
        <div class="bubble" dir="auto">
          <MessageText text={message.body} />
        </div>
      )}
      {state === 'sending' ? (
        <div class="message-foot">Sending…</div>
      ) : (
        <div class="outgoing-failed field-error">
          <p>
            {state === 'waiting'
              ? 'Not sent yet. The console tries again until the service answers.'
              : `${isSent ? 'Sent, but the conversation was not closed.' : 'Not sent.'} ${failure?.text ?? ''}`}
          </p>
          <div class="line">
            <Button
              kind="small"
              onClick={() => thread.outgoing.retry(operationId)}
              text={isSent ? 'Close now' : 'Send now'}
            />
            {state === 'failed' && !isSent && (
              <Button
                kind="ghost small"
                onClick={() => addToReply(thread.outgoing.discard(operationId))}
                text="Edit message"
              />
            )}
          </div>
        </div>
      )}
    </li>
  )
}

const headOf = ({ author }: Message, name: string, me: string) =>
  author?.kind === 'visitor' ? name : authorName(author, me) || 'System'

export function NoteItem({ note: { author, body, createdAt } }: { note: Note }) {
  const me = useConsole().session.displayName
  return (
    <li class="message note">
      <div class="message-head">Note · {author?.displayName === me ? 'You' : author?.displayName}</div>
      <div class="bubble" dir="auto">
        <MessageText text={body} />
      </div>
      <div class="message-foot">
        <When at={createdAt} timeOnly />
      </div>
    </li>
  )
}

/** Button that withdraws a message. Shown for own messages, and for all with the scope `messages:redact`. */
function WithdrawButton({ message, thread }: Pick<MessageItemProps, 'message' | 'thread'>) {
  const { session } = useConsole()
  const isOwn = message.author?.kind === 'agent' && message.author.displayName === session.displayName
  if (!(isOwn || session.scopes.includes('messages:redact'))) return null
  return (
    <DialogButton
      button=""
      icon="trash"
      kind="ghost withdraw"
      label="Withdraw message"
      title="Withdraw message?"
      action="Withdraw message"
      danger
      onConfirm={() => thread.withdraw(message)}
    >
      <p>
        The text disappears for the visitor and for all operators, also from search and exports. What was already read,
        copied or sent to other systems, for example by webhook, is beyond reach. This cannot be undone.
      </p>
    </DialogButton>
  )
}
