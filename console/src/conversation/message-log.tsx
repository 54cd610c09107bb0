import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Fragment } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Message, Note } from '#proto/messaging/v1/messaging_pb.js'
import { formatDay, isSameDay, millisecondsOf } from '../time.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Loading } from '../ui/notice.tsx'
import { When } from '../ui/when.tsx'
import { MessageText } from './message-text.tsx'
import { authorName, stateText } from './message-words.ts'
import type { OutgoingMessage } from './outbox.ts'
import type { Thread } from './thread.ts'
import { buildTimeline, type TimelineItem } from './timeline.ts'
import { WithdrawButton } from './withdraw-button.tsx'

/** Distance from the end, in pixels, up to which the log counts as scrolled to the end. */
const nearEnd = 80

interface MessageLogProps {
  thread: Thread
  name: string
  me: string
  composer: { current: HTMLTextAreaElement | null }
  /** Sequence of the message to scroll to when it is loaded. */
  target: number | undefined
}

export function MessageLog({ thread, name, me, composer, target }: MessageLogProps) {
  const scroller = useRef<HTMLElement>(null)
  const position = useRef({ atEnd: true, height: 0, first: '', last: '' })
  const [hasNew, setHasNew] = useState(false)
  const messages = thread.messages.value
  const outgoing = thread.outgoing.list.value
  const timeline = buildTimeline({
    messages,
    events: thread.events.value,
    notes: thread.notes.value,
    commands: thread.commands.value,
    consent: thread.session.value?.consent,
    hasOlder: thread.hasOlder.value,
    me,
  })
  const types = thread.visitorTypes.value
  const first = messages[0]?.messageId ?? ''
  const last = messages.at(-1)?.messageId ?? ''

  // If the log is scrolled to the end, it stays at the end. Otherwise the visible messages stay in
  // place, even when older messages are inserted above.
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    const { atEnd, height, first: firstBefore, last: lastBefore } = position.current
    if (atEnd) element.scrollTop = element.scrollHeight
    else if (firstBefore !== '' && firstBefore !== first) element.scrollTop += element.scrollHeight - height
    else if (lastBefore !== last) setHasNew(true)
    position.current = { ...position.current, height: element.scrollHeight, first, last }
  }, [first, last, outgoing, types, timeline.length])

  const hasTarget = messages.some(({ sequence }) => sequence === target)
  useLayoutEffect(() => {
    const found = hasTarget && scroller.current?.querySelector<HTMLElement>('.message.found')
    if (!found) return
    position.current.atEnd = false
    found.scrollIntoView({ block: 'center' })
    found.focus({ preventScroll: true })
  }, [target, hasTarget])

  // A notice above the log or a longer draft below makes the log smaller. If the log was scrolled
  // to the end, it must stay there.
  useEffect(() => {
    const element = scroller.current!
    const observer = new ResizeObserver(() => {
      if (position.current.atEnd) element.scrollTop = element.scrollHeight
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

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
          <Button kind="ghost small older" disabled={thread.loadingOlder.value} onClick={() => void thread.loadOlder()}>
            {thread.loadingOlder.value ? 'Loading…' : 'Load older messages'}
          </Button>
        )}
        {thread.loading.value && messages.length === 0 && <Loading label="Loading messages" />}
        <ol class="messages">
          {timeline.map((item, index) => (
            <Fragment key={item.key}>
              <DayBefore at={item.at} before={timeline[index - 1]?.at} />
              {item.kind === 'message' && (
                <MessageItem
                  message={item.message}
                  before={messageAt(timeline, index - 1)}
                  after={messageAt(timeline, index + 1)}
                  name={name}
                  me={me}
                  thread={thread}
                  isFound={item.message.sequence === target}
                />
              )}
              {item.kind === 'note' && <NoteItem note={item.note} me={me} />}
              {item.kind === 'event' && (
                <li class="happened">
                  <bdi>{item.text}</bdi> · <When at={timestampFromMs(item.at)} timeOnly />
                </li>
              )}
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
        <Button kind="small to-end" onClick={scrollToEnd}>
          <Icon name="down" />
          New messages
        </Button>
      )}
    </div>
  )
}

function messageAt(timeline: readonly TimelineItem[], index: number): Message | undefined {
  const item = timeline[index]
  return item?.kind === 'message' ? item.message : undefined
}

function NoteItem({ note: { author, body, createdAt }, me }: { note: Note; me: string }) {
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

function DayBefore({ at, before }: { at: number; before: number | undefined }) {
  if (before !== undefined && isSameDay(new Date(at), new Date(before))) return null
  return (
    <li class="day">
      <span>{formatDay(new Date(at), new Date())}</span>
    </li>
  )
}

interface MessageItemProps extends Pick<MessageLogProps, 'name' | 'me' | 'thread'> {
  message: Message
  before: Message | undefined
  after: Message | undefined
  isFound: boolean
}

/** Time within which messages of one author form a group. */
const groupMs = 300_000

function MessageItem({ message, before, after, name, me, thread, isFound }: MessageItemProps) {
  const kind = message.author?.kind ?? 'system'
  const author = headOf(message, name, me)
  const isGroup = (one: Message | undefined, next: Message | undefined) =>
    one !== undefined &&
    next !== undefined &&
    headOf(one, name, me) === headOf(next, name, me) &&
    one.author?.kind === next.author?.kind &&
    millisecondsOf(next.createdAt) - millisecondsOf(one.createdAt) < groupMs
  const continues = isGroup(before, message)
  // Time and state are shown below the last message of a group. If the states in a group differ,
  // time and state are shown below the last message of each state.
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
        <div class="bubble" dir="auto" lang={message.locale}>
          <MessageText text={message.body} />
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
      <div class="message-foot">
        <WithdrawButton message={message} thread={thread} me={me} />
        {showsFoot && (
          <>
            <When at={message.createdAt} timeOnly />
            <span class="message-state">{stateText(message)}</span>
          </>
        )}
      </div>
    </li>
  )
}

type OutgoingItemProps = Pick<MessageLogProps, 'thread' | 'composer'> & { message: OutgoingMessage }

function OutgoingItem({ message, thread, composer }: OutgoingItemProps) {
  const { operationId, state, failure } = message

  function edit() {
    const body = thread.outgoing.discard(operationId)
    const field = composer.current
    if (!field) return
    field.value = field.value === '' ? body : `${field.value}\n${body}`
    field.dispatchEvent(new Event('input', { bubbles: true }))
    field.focus()
  }

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
            {state === 'waiting'
              ? 'Not sent yet. The console tries again until the service answers.'
              : `Not sent. ${failure?.text ?? ''}`}
          </p>
          <div class="line">
            <Button kind="small" onClick={() => thread.outgoing.retry(operationId)}>
              Send now
            </Button>
            {state === 'failed' && (
              <Button kind="ghost small" onClick={edit}>
                Edit message
              </Button>
            )}
          </div>
        </div>
      )}
    </li>
  )
}

const headOf = ({ author }: Message, name: string, me: string): string =>
  author?.kind === 'visitor' ? name : authorName(author, me) || 'System'
