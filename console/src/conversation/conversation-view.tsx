import { useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Conversation, ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../console-context.ts'
import { visitorName } from '../inbox/inbox-merge.ts'
import { pathOf } from '../router.ts'
import { useAction } from '../ui/action.ts'
import { Avatar, presenceWords, VerifiedMark } from '../ui/avatar.tsx'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, FailureNotice, Notice } from '../ui/notice.tsx'
import { Composer } from './composer.tsx'
import { Details } from './details.tsx'
import { MessageLog } from './message-log.tsx'
import { createThread, type Thread } from './thread.ts'

/**
 * Time in milliseconds for which *Reopen* is disabled after a closing, so that a double click on
 * *Close* does not reopen the conversation.
 */
const restMs = 1_000

/** Shows one conversation: messages, reply field and visitor details. */
interface ConversationViewProps {
  conversationId: string
  details: boolean
  /** Sequence of the message to scroll to. */
  message: number | undefined
}

export function ConversationView({ conversationId, details, message }: ConversationViewProps) {
  const { api, inbox, outbox, session, holder, announcer, router, shortcuts } = useConsole()
  const thread = useMemo(
    () =>
      createThread({
        api,
        inbox,
        outbox,
        conversationId,
        agent: holder.agent,
        onVisitorMessage: ({ body }) => announcer.say(`New message: ${body}`),
        now: Date.now,
      }),
    [conversationId],
  )
  useEffect(() => () => thread.stop(), [thread])
  useEffect(() => {
    if (message !== undefined) void thread.reveal(message)
  }, [thread, message])
  useVisibility(thread)
  const { busy, failure, run } = useAction()
  const composer = useRef<HTMLTextAreaElement>(null)
  const conversation = thread.conversation.value
  const mine = conversation?.agent?.displayName === session.displayName
  const path = (open: boolean) => pathOf({ view: 'conversation', conversationId, details: open })

  const assign = () =>
    run(async () => {
      const assigned = thread.conversation.peek()?.agent?.displayName === session.displayName
      await thread.assign(assigned ? undefined : holder.agent())
      announcer.say(assigned ? 'Conversation unassigned.' : 'Conversation assigned to you.')
    })
  const switchBot = () =>
    run(async () => {
      const isStopped = thread.conversation.peek()?.bot?.stopped
      await (isStopped ? thread.resumeBot() : thread.stopBot())
      announcer.say(isStopped ? 'Conversation given back to the bot.' : 'Bot stopped.')
    })
  const [undo, setUndo] = useState<'offered' | 'resting'>()
  const close = () =>
    run(async () => {
      await thread.close()
      setUndo('resting')
      setIsAsked(false)
      setTimeout(() => setUndo((now) => now && 'offered'), restMs)
      announcer.say('Conversation closed. To undo, choose Undo.')
    })
  const [isAsked, setIsAsked] = useState(false)
  const requestRating = () =>
    run(async () => {
      await thread.requestRating()
      setIsAsked(true)
      announcer.say('The visitor was asked for a rating.')
    })
  const reopen = () =>
    run(async () => {
      await thread.reopen()
      setUndo(undefined)
      announcer.say('Conversation reopened.')
    })
  const isClosed = conversation?.status === ConversationStatus.CLOSED
  useEffect(
    () =>
      shortcuts.bind({
        r: () => composer.current?.focus(),
        a: () => void assign(),
        c: () => void (isClosed ? reopen() : close()),
        i: () => router.go(path(!details)),
      }),
    [thread, details, isClosed],
  )
  // A message reopens its conversation, so the conversation is closed after the last reply is sent.
  const [closesWhenSent, setClosesWhenSent] = useState(false)
  const outgoing = thread.outgoing.list.value
  useEffect(() => {
    if (!closesWhenSent) return
    if (outgoing.length === 0) void close()
    if (outgoing.length === 0 || outgoing.some(({ state }) => state === 'failed')) setClosesWhenSent(false)
  }, [closesWhenSent, outgoing])

  if (!conversation && thread.failure.value && !thread.loading.value) {
    return (
      <div class="thread" data-focus-first>
        <Empty icon="warning" title="Could not load this conversation">
          <p>{thread.failure.value.text}</p>
          <div class="line">
            <Button onClick={() => void thread.reload()}>Try again</Button>
            <a class="button" href={pathOf({ view: 'inbox' })}>
              Back to inbox
            </a>
          </div>
        </Empty>
      </div>
    )
  }

  const name = visitorName(conversation ?? { conversationId, visitor: undefined })
  const bot = conversation?.bot
  const presence = inbox.presenceOf(conversationId)
  const verified = conversation?.visitor?.identityState === 'verified'
  return (
    <>
      <section class="thread" aria-label="Conversation" data-focus-first={details ? undefined : true}>
        <header class="thread-head">
          <a class="icon-button only-narrow" href={pathOf({ view: 'inbox' })} aria-label="Back to the list">
            <Icon name="back" />
          </a>
          <Avatar name={name} id={conversationId} presence={presence} />
          <div class="thread-title">
            <h2 class="ellipsis" tabIndex={-1}>
              <bdi>{name}</bdi> {verified && <VerifiedMark />}
            </h2>
            <p class="ellipsis">
              {presenceWords[presence] && `${presenceWords[presence]} · `}
              {identityText(conversation)}
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
              {conversation?.agent &&
                ` · ${mine ? 'Assigned to you' : `Assigned to ${conversation.agent.displayName}`}`}
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
            <a class="icon-button only-medium" href={path(!details)} aria-label="Visitor details">
              <Icon name="info" />
            </a>
          </div>
        </header>
        {isClosed && undo && (
          <Notice
            tone="info"
            action={
              <>
                {conversation?.canRequestRating && !isAsked && (
                  <Button kind="small" disabled={busy} onClick={requestRating}>
                    Ask for a rating
                  </Button>
                )}
                <Button kind="small" disabled={busy} onClick={reopen}>
                  Undo
                </Button>
              </>
            }
          >
            Conversation closed.
          </Notice>
        )}
        <FailureNotice failure={failure} />
        <FailureNotice failure={thread.failure.value} retry={() => void thread.reload()} />
        <MessageLog thread={thread} name={name} me={session.displayName} composer={composer} target={message} />
        <Composer thread={thread} closed={isClosed} field={composer} closeWhenSent={() => setClosesWhenSent(true)} />
      </section>
      <Details thread={thread} name={name} backPath={path(false)} open={details} />
    </>
  )
}

function identityText(conversation: Conversation | undefined): string {
  if (conversation?.visitor?.identityState === 'verified') return 'Verified'
  return conversation?.contact?.name ? 'Name not verified' : 'Anonymous'
}

/** Marks messages as read while the page is visible and has the focus. */
function useVisibility(thread: Thread) {
  const [visible, setVisible] = useState(isVisible)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const update = () => setVisible(isVisible())
    for (const name of ['focus', 'blur']) window.addEventListener(name, update, { signal })
    document.addEventListener('visibilitychange', update, { signal })
    return () => controller.abort()
  }, [])
  useEffect(() => {
    thread.setVisible(visible)
    return () => thread.setVisible(false)
  }, [thread, visible])
  useSignalEffect(() => {
    // Runs again when the first page of messages has loaded, so that these messages are marked as
    // read, too.
    if (!thread.loading.value) thread.setVisible(isVisible())
  })
}

const isVisible = () => document.visibilityState === 'visible' && document.hasFocus()
