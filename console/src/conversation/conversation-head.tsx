import { ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Avatar, presenceWords, VerifiedMark } from '../ui/avatar.tsx'
import { Button, Icon } from '../ui/page.tsx'
import type { useConversationActions } from './conversation-actions.ts'
import type { Thread } from './thread.ts'

interface ConversationHeadProps {
  thread: Thread
  name: string
  actions: ReturnType<typeof useConversationActions>
  /** Shows or hides the visitor's details. */
  detailsPath: string
}

/** Shows who the visitor is and the state of the conversation, with the buttons that change it. */
export function ConversationHead({ thread, name, actions, detailsPath }: ConversationHeadProps) {
  const { inbox, session, router } = useConsole()
  const { busy, undo, assign, switchBot, close, reopen } = actions
  const { conversationId } = thread
  const conversation = thread.conversation.value
  const mine = conversation?.assignedOperatorId === session.operator
  const isClosed = conversation?.status === ConversationStatus.CLOSED
  const bot = conversation?.bot
  const presence = inbox.presenceOf(conversationId)
  const verified = conversation?.visitor?.identityState === 'verified'
  return (
    <header class="thread-head">
      <a class="icon-button only-narrow" href={router.inFilter()} aria-label="Back to the list">
        <Icon name="back" />
      </a>
      <Avatar name={name} id={conversationId} presence={presence} />
      <div class="thread-title">
        <h2 class="name-line" tabIndex={-1}>
          <bdi class="ellipsis">{name}</bdi> {verified && <VerifiedMark />}
        </h2>
        <p class="ellipsis">
          {presenceWords[presence] && `${presenceWords[presence]} · `}
          {verified ? 'Verified' : conversation?.contact?.name ? 'Name not verified' : 'Anonymous'}
          {conversation?.contact && (
            <>
              {' · '}
              <a href={pathOf({ view: 'lead', leadId: conversation.contact.leadId })} title="Show the lead">
                {conversation.contact.email ?? 'Lead'}
              </a>
            </>
          )}
          {thread.session.value?.panelClosedAt && ' · Closed the chat panel'}
          {thread.session.value?.visitorBanned && ' · Banned'}
          {isClosed && ' · Closed'}
          {bot && ` · ${bot.bot?.displayName || 'Bot'} (bot) ${bot.stopped ? 'is stopped' : 'answers'}`}
          {conversation?.agent && ` · ${mine ? 'Assigned to you' : `Assigned to ${conversation.agent.displayName}`}`}
        </p>
      </div>
      <div class="line">
        <Button kind="small" disabled={busy || !conversation} onClick={assign}>
          {mine ? (
            'Unassign'
          ) : (
            <span>
              Assign<span class="not-narrow"> to me</span>
            </span>
          )}
        </Button>
        {bot && (
          <Button kind="small" disabled={busy} onClick={switchBot}>
            {bot.stopped ? 'Give back to bot' : 'Stop bot'}
          </Button>
        )}
        <Button
          kind="small close-toggle"
          disabled={busy || !conversation || undo === 'resting'}
          onClick={isClosed ? reopen : close}
        >
          {isClosed ? 'Reopen' : 'Close'}
        </Button>
        <a class="icon-button only-medium" href={detailsPath} aria-label="Visitor details">
          <Icon name="info" />
        </a>
      </div>
    </header>
  )
}
