import { Fragment } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import { dateOf, formatDay, formatFull, formatTime, isSameDay } from '../time.ts'
import { Icon } from '../ui/icon.tsx'
import { Loading } from '../ui/notice.tsx'
import { linkParts } from './links.ts'
import type { OutgoingMessage } from './outgoing.ts'
import type { Thread } from './thread.ts'

/** Maximum distance from the end, in pixels, that counts as being at the end. */
const nearEnd = 80

export function MessageLog({
  thread,
  name,
  me,
  composer,
}: {
  thread: Thread
  name: string
  me: string
  composer: { current: HTMLTextAreaElement | null }
}) {
  const scroller = useRef<HTMLElement>(null)
  const position = useRef({ atEnd: true, height: 0, first: '' })
  const [hasNew, setHasNew] = useState(false)
  const messages = thread.messages.value
  const outgoing = thread.outgoing.list.value
  const types = thread.visitorTypes.value
  const first = messages[0]?.messageId ?? ''
  const last = messages.at(-1)?.messageId ?? ''

  // Stays at the end if the reader is there. Otherwise keeps the visible messages in position,
  // even when older ones are inserted above.
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    const { atEnd, height, first: firstBefore } = position.current
    if (atEnd) element.scrollTop = element.scrollHeight
    else if (firstBefore !== '' && firstBefore !== first) element.scrollTop += element.scrollHeight - height
    else setHasNew(true)
    position.current = { ...position.current, height: element.scrollHeight, first }
  }, [first, last, outgoing, types])

  function scrollToEnd() {
    scroller.current!.scrollTop = scroller.current!.scrollHeight
    setHasNew(false)
  }

  return (
    <div class="log-frame">
      <section
        class="log"
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: lets keyboard users scroll with the arrow keys.
        tabIndex={0}
        aria-label={`Messages with ${name}`}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          position.current.atEnd = scrollHeight - scrollTop - clientHeight < nearEnd
          position.current.height = scrollHeight
          if (position.current.atEnd) setHasNew(false)
        }}
      >
        {thread.hasOlder.value && (
          <button
            type="button"
            class="button ghost small older"
            disabled={thread.loadingOlder.value}
            onClick={() => void thread.loadOlder()}
          >
            {thread.loadingOlder.value ? 'Loading…' : 'Load older messages'}
          </button>
        )}
        {thread.loading.value && messages.length === 0 && <Loading label="Loading messages" />}
        <ol class="messages">
          {messages.map((message, index) => (
            <Fragment key={message.messageId}>
              <DayBefore message={message} before={messages[index - 1]} />
              <MessageItem message={message} before={messages[index - 1]} name={name} me={me} />
            </Fragment>
          ))}
          {outgoing.map((message) => (
            <OutgoingItem key={message.operationId} message={message} thread={thread} composer={composer} />
          ))}
        </ol>
        {types && (
          <p class="typing-line">
            <span class="dots" aria-hidden="true">
              <span />
              <span />
              <span />
            </span>
            {name} is typing
          </p>
        )}
      </section>
      {hasNew && (
        <button type="button" class="button small to-end" onClick={scrollToEnd}>
          <Icon name="down" />
          New messages
        </button>
      )}
    </div>
  )
}

function DayBefore({ message, before }: { message: Message; before: Message | undefined }) {
  const date = dateOf(message.createdAt)
  const earlier = dateOf(before?.createdAt)
  if (!date || (earlier && isSameDay(date, earlier))) return null
  return (
    <li class="day">
      <span>{formatDay(date, new Date())}</span>
    </li>
  )
}

function MessageItem({
  message,
  before,
  name,
  me,
}: {
  message: Message
  before: Message | undefined
  name: string
  me: string
}) {
  const kind = message.author?.kind ?? 'system'
  const date = dateOf(message.createdAt)
  const author = authorName(message, name, me)
  const continues =
    before !== undefined &&
    authorName(before, name, me) === author &&
    before.author?.kind === kind &&
    Number((message.createdAt?.seconds ?? 0n) - (before.createdAt?.seconds ?? 0n)) < 300
  return (
    <li class={`message ${kind}${continues ? ' continues' : ''}`}>
      <div class="message-head">
        <span class="message-author">{author}</span>
      </div>
      <div class="bubble" dir="auto" lang={message.locale}>
        <MessageText text={message.body} />
      </div>
      <div class="message-foot">
        {date && (
          <time dateTime={date.toISOString()} title={formatFull(date)}>
            {formatTime(date)}
          </time>
        )}
        <span class="message-state">{stateText(message)}</span>
      </div>
    </li>
  )
}

function OutgoingItem({
  message,
  thread,
  composer,
}: {
  message: OutgoingMessage
  thread: Thread
  composer: { current: HTMLTextAreaElement | null }
}) {
  const { operationId, state, failure } = message
  const certain = failure && !failure.ambiguous
  return (
    <li class={`message agent outgoing ${state}`}>
      <div class="bubble" dir="auto">
        <MessageText text={message.body} />
      </div>
      {state === 'sending' ? (
        <div class="message-foot">Sending…</div>
      ) : (
        <div class="outgoing-failed">
          <p>
            {certain
              ? `Not sent. ${failure.text}`
              : 'No response, so this may not have been sent. Sending again never creates a duplicate.'}
          </p>
          <div class="button-row">
            <button type="button" class="button small" onClick={() => thread.outgoing.retry(operationId)}>
              Send again
            </button>
            <button
              type="button"
              class="button ghost small"
              onClick={() => {
                const body = thread.outgoing.discard(operationId)
                const field = composer.current
                if (!field) return
                field.value = field.value === '' ? body : `${field.value}\n${body}`
                field.dispatchEvent(new Event('input', { bubbles: true }))
                field.focus()
              }}
            >
              Edit message
            </button>
          </div>
        </div>
      )}
    </li>
  )
}

/** Plain text with http(s) links. The links send no referrer. */
function MessageText({ text }: { text: string }) {
  return (
    <>
      {linkParts(text).map((part, index) =>
        part.href === undefined ? (
          part.text
        ) : (
          <a key={`${index} ${part.href}`} href={part.href} target="_blank" rel="noopener noreferrer nofollow">
            {part.text}
          </a>
        ),
      )}
    </>
  )
}

function authorName({ author }: Message, name: string, me: string): string {
  if (author?.kind === 'visitor') return name
  if (author?.kind === 'agent') return author.displayName === me ? 'You' : (author.displayName ?? 'Agent')
  return 'System'
}

/** An agent's message is stored once it is listed. A visitor's message shows its delivery state. */
function stateText({ author, state }: Message): string {
  if (author?.kind === 'agent') return 'Sent'
  if (author?.kind !== 'visitor') return ''
  return { queued: 'New', sent: 'Received', delivered: 'Delivered', read: 'Read', failed: 'Failed' }[state] ?? state
}
