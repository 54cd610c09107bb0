import { useEffect, useMemo, useRef } from 'preact/hooks'
import { ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole, useShortcuts } from '../console-context.ts'
import { visitorName } from '../inbox/conversation-record.ts'
import { Button, Empty, FailureNotice, Notice } from '../ui/page.tsx'
import { Composer } from './composer/composer.tsx'
import { ConversationHead, useConversationActions } from './conversation-head.tsx'
import { Details } from './details/details.tsx'
import { MessageLog } from './messages/message-log.tsx'
import { createThread, type Thread } from './thread.ts'

interface ConversationViewProps {
  conversationId: string
  details: boolean
  message: number | undefined
}

export function ConversationView({ conversationId, details, message }: ConversationViewProps) {
  const context = useConsole()
  const { router } = context
  const thread = useMemo(() => createThread(context, conversationId), [conversationId])
  useEffect(() => () => thread.stop(), [thread])
  useEffect(() => {
    if (message !== undefined) void thread.reveal(message)
  }, [thread, message])
  useVisibility(thread)
  const composer = useRef<HTMLTextAreaElement>(null)
  const addToReply = useRef((_: string) => {})
  const conversation = thread.conversation.value
  const path = (open: boolean) => router.inFilter({ conversationId, part: open ? 'details' : undefined })
  const actions = useConversationActions(thread)
  const { busy, failure, undo, isAsked, assign, close, reopen, requestRating } = actions
  const isClosed = conversation?.status === ConversationStatus.CLOSED
  useShortcuts({
    r: () => composer.current?.focus(),
    a: () => void assign(),
    c: () => void (isClosed ? reopen() : close()),
    i: () => router.go(path(!details)),
  })

  if (!conversation && thread.failure.value && !thread.loading.value) {
    return (
      <div class="thread" data-focus-first>
        <Empty icon="warning" title="Could not load this conversation">
          <p>{thread.failure.value.text}</p>
          <div class="line">
            <Button onClick={thread.reload}>Try again</Button>
            <a class="button" href={router.inFilter()}>
              Back to inbox
            </a>
          </div>
        </Empty>
      </div>
    )
  }

  const name = visitorName(conversation ?? { conversationId, visitor: undefined })
  return (
    <>
      <section class="thread" aria-label="Conversation" data-focus-first={details ? undefined : true}>
        <ConversationHead thread={thread} name={name} actions={actions} detailsPath={path(!details)} />
        {isClosed && undo && (
          <Notice
            tone="info"
            action={
              <>
                {conversation?.canRequestRating && !isAsked && (
                  <Button kind="small" disabled={busy} onClick={requestRating} text="Ask for a rating" />
                )}
                <Button kind="small" disabled={busy} onClick={reopen} text="Undo" />
              </>
            }
          >
            Conversation closed.
          </Notice>
        )}
        <FailureNotice failure={failure} />
        <FailureNotice failure={thread.failure.value} retry={thread.reload} />
        <MessageLog thread={thread} name={name} addToReply={(text) => addToReply.current(text)} target={message} />
        <Composer thread={thread} closed={isClosed} field={composer} addToReply={addToReply} />
      </section>
      <Details thread={thread} name={name} backPath={path(false)} open={details} />
    </>
  )
}

/** Marks messages as read while the page is visible and has the focus. */
function useVisibility(thread: Thread) {
  const update = () => thread.setVisible(!document.hidden && document.hasFocus())
  useEffect(() => {
    const controller = new AbortController()
    for (const name of ['focus', 'blur']) window.addEventListener(name, update, controller)
    document.addEventListener('visibilitychange', update, controller)
    return () => controller.abort()
  }, [])
  // Marks the first messages when they have loaded.
  useEffect(update, [thread.loading.value])
}
