import { useEffect, useState } from 'preact/hooks'
import { ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { opensNext } from '../storages.ts'
import { Avatar, presenceWords, VerifiedMark } from '../ui/avatar.tsx'
import { useAction } from '../ui/load.tsx'
import { Button, Icon } from '../ui/page.tsx'
import type { Thread } from './thread.ts'

/** Time in which *Reopen* is off after a closing, so that a double click on *Close* does not reopen. */
const restMs = 1_000

/** `undo` is set after a closing in this view. `isAsked`: the visitor was then asked for a rating. */
export function useConversationActions(thread: Thread) {
  const { api, session, holder, announcer, inbox, router } = useConsole()
  const { conversationId } = thread
  const { busy, failure, run } = useAction()
  const [undo, setUndo] = useState<'offered' | 'resting'>()
  const [isAsked, setIsAsked] = useState(false)

  /** `call` returns what screen readers say when it has succeeded. */
  const act = (call: () => Promise<string>) => () => run(async () => announcer.say(await call()))

  const assign = act(async () => {
    const assigned = thread.conversation.peek()?.assignedOperatorId === session.operator
    await thread.assign(assigned ? undefined : { ...holder.agent(), operatorId: session.operator })
    return assigned ? 'Conversation unassigned.' : 'Conversation assigned to you.'
  })
  const switchBot = act(async () => {
    const isStopped = thread.conversation.peek()?.bot?.stopped
    const call = isStopped ? api.messaging.resumeBot : api.messaging.stopBot
    await thread.take(call({ conversationId }))
    return isStopped ? 'Conversation given back to the bot.' : 'Bot stopped.'
  })
  function offerUndo() {
    setUndo('resting')
    setIsAsked(false)
    setTimeout(() => setUndo((now) => now && 'offered'), restMs)
    return 'Conversation closed. To undo, choose Undo.'
  }
  const close = act(async () => {
    await thread.take(api.messaging.closeConversation({ conversationId }))
    return offerUndo()
  })
  const closings = thread.closings.value
  useEffect(() => {
    if (closings === 0) return
    announcer.say(offerUndo())
    if (opensNext.peek())
      void inbox
        .nextUnanswered(conversationId)
        .then((next) => next && router.go(router.inFilter({ conversationId: next })))
  }, [closings])
  const requestRating = act(async () => {
    await thread.take(api.messaging.closeConversation({ conversationId, requestRating: true }))
    setIsAsked(true)
    return 'The visitor was asked for a rating.'
  })
  const reopen = act(async () => {
    await thread.take(api.messaging.reopenConversation({ conversationId }))
    setUndo(undefined)
    return 'Conversation reopened.'
  })

  return { busy, failure, undo, isAsked, assign, switchBot, close, requestRating, reopen }
}

interface ConversationHeadProps {
  thread: Thread
  name: string
  actions: ReturnType<typeof useConversationActions>
  detailsPath: string
}

/** Shows who the visitor is and the state of the conversation, with the buttons that change it. */
export function ConversationHead({ thread, name, actions, detailsPath }: ConversationHeadProps) {
  const { inbox, session, router, others } = useConsole()
  const { busy, undo, assign, switchBot, close, reopen } = actions
  const { conversationId } = thread
  const conversation = thread.conversation.value
  const mine = conversation?.assignedOperatorId === session.operator
  const isClosed = conversation?.status === ConversationStatus.CLOSED
  const bot = conversation?.bot
  const botName = bot?.bot?.displayName || 'Bot'
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
        <p class="hint breakable">
          {others.value.map((other) => `${other} is here too · `)}
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
          {bot && (bot.stopped ? ` · ${botName} (bot) is stopped` : ` · ${botName} (bot) answers`)}
          {conversation?.agent && ` · ${mine ? 'Assigned to you' : `Assigned to ${conversation.agent.displayName}`}`}
        </p>
      </div>
      <div class="line">
        <Button kind="small" disabled={busy || !conversation} onClick={assign}>
          {mine ? (
            'Unassign'
          ) : (
            <>
              <span class="not-narrow">Assign to me</span>
              <span class="only-narrow">Assign</span>
            </>
          )}
        </Button>
        {bot && (
          <Button
            kind="small"
            disabled={busy}
            onClick={switchBot}
            text={bot.stopped ? 'Give back to bot' : 'Stop bot'}
          />
        )}
        <Button
          kind="small close-toggle"
          disabled={busy || !conversation || undo === 'resting'}
          onClick={isClosed ? reopen : close}
          text={isClosed ? 'Reopen' : 'Close'}
        />
        <a class="icon-button only-medium" href={detailsPath} aria-label="Visitor details">
          <Icon name="info" />
        </a>
      </div>
    </header>
  )
}
