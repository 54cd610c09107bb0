import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Fragment } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import { useConsole } from '../../console-context.ts'
import { namedFields } from '../../leads/lead-titles.ts'
import { pathOf } from '../../router.ts'
import { formatDay, isSameDay } from '../../time.ts'
import { Button, Facts, Loading, When } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'
import { MessageItem, NoteItem, OutgoingItem } from './message-item.tsx'
import { buildTimeline, type TimelineItem } from './timeline.ts'

interface MessageLogProps {
  thread: Thread
  name: string
  addToReply: (text: string) => void
  /** Sequence of the message to scroll to when it is loaded. */
  target: number | undefined
}

export function MessageLog({ thread, name, addToReply, target }: MessageLogProps) {
  const messages = thread.messages.value
  const outgoing = thread.outgoing.list.value
  const timeline = buildTimeline({
    messages,
    events: thread.events.value,
    notes: thread.notes.value,
    consent: thread.session.value?.consent,
    hasOlder: thread.hasOlder.value,
    me: useConsole().session.displayName,
  })
  const typists = thread.typists.value.map((typist) => typist || name)
  const { scroller, hasNew, scrollToEnd, onScroll } = useLogScroll(messages, target, [
    outgoing,
    typists.length,
    timeline.length,
  ])

  return (
    <div class="log-frame">
      <section
        class="log"
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: lets keyboard users scroll with the arrow keys.
        tabIndex={0}
        aria-label={`Messages with ${name}`}
        onScroll={onScroll}
      >
        {thread.hasOlder.value && (
          <Button
            kind="ghost small older"
            disabled={thread.loadingOlder.value}
            onClick={thread.loadOlder}
            text={thread.loadingOlder.value ? 'Loading…' : 'Load older messages'}
          />
        )}
        {thread.loading.value && messages.length === 0 && <Loading label="Loading messages" />}
        <ol class="messages">
          {timeline.map((item, index) => (
            <Fragment key={item.key}>
              {!isSameDay(new Date(item.at), new Date(timeline[index - 1]?.at ?? 0)) && (
                <li class="day">
                  <span>{formatDay(new Date(item.at), new Date())}</span>
                </li>
              )}
              {item.kind === 'message' && (
                <MessageItem
                  message={item.message}
                  before={messageAt(timeline, index - 1)}
                  after={messageAt(timeline, index + 1)}
                  name={name}
                  thread={thread}
                  isFound={item.message.sequence === target}
                />
              )}
              {item.kind === 'note' && <NoteItem note={item.note} />}
              {item.kind === 'event' && (
                <li class="happened">
                  <bdi>{item.text}</bdi> · <When at={timestampFromMs(item.at)} timeOnly />
                  {item.form && (
                    <div class="form-entry">
                      <Facts of={namedFields(item.form.fields).map(([name, value]) => [name, <bdi>{value}</bdi>])} />
                      <a href={pathOf({ view: 'lead', leadId: item.form.leadId })}>Show lead</a>
                    </div>
                  )}
                </li>
              )}
            </Fragment>
          ))}
          {outgoing.map((message) => (
            <OutgoingItem key={message.operationId} message={message} thread={thread} addToReply={addToReply} />
          ))}
        </ol>
        {typists.length > 0 && (
          <p class="typing-line hint">
            {typists.length > 1 ? `${typists.join(', ')} are typing…` : `${typists[0]} is typing…`}
          </p>
        )}
      </section>
      {hasNew && <Button kind="small to-end" icon="down" onClick={scrollToEnd} text="New messages" />}
    </div>
  )
}

function messageAt(timeline: readonly TimelineItem[], index: number): Message | undefined {
  const item = timeline[index]
  return item?.kind === 'message' ? item.message : undefined
}

/** Distance from the end, in pixels, up to which the log counts as scrolled to the end. */
const nearEnd = 80

/**
 * Scrolls the message log: keeps it at the end, keeps the visible messages in place, or shows the
 * target. `hasNew` is true if there are new messages below the visible ones.
 *
 * @param target sequence of the message to scroll to when it is loaded
 * @param others everything else that changes the height of the log, always the same number of values
 */
function useLogScroll(messages: readonly Message[], target: number | undefined, others: readonly unknown[]) {
  const first = messages[0]?.messageId ?? ''
  const last = messages.at(-1)?.messageId ?? ''
  const hasTarget = messages.some(({ sequence }) => sequence === target)
  const scroller = useRef<HTMLElement>(null)
  const position = useRef({ atEnd: true, height: 0, first: '', last: '' })
  const [hasNew, setHasNew] = useState(false)

  // A log at its end stays there. Otherwise the visible messages stay in place, even when older
  // ones come above.
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    const { atEnd, height, first: firstBefore, last: lastBefore } = position.current
    if (atEnd) element.scrollTop = element.scrollHeight
    else if (firstBefore !== '' && firstBefore !== first) element.scrollTop += element.scrollHeight - height
    else if (lastBefore !== last) setHasNew(true)
    position.current = { ...position.current, height: element.scrollHeight, first, last }
  }, [first, last, ...others])

  useLayoutEffect(() => {
    const found = hasTarget && scroller.current?.querySelector<HTMLElement>('.message.found')
    if (!found) return
    position.current.atEnd = false
    found.scrollIntoView({ block: 'center' })
    found.focus({ preventScroll: true })
  }, [target, hasTarget])

  // A notice above the log or a longer draft below makes the log smaller.
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

  function onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = scroller.current!
    position.current.atEnd = scrollHeight - scrollTop - clientHeight < nearEnd
    position.current.height = scrollHeight
    if (position.current.atEnd) setHasNew(false)
  }

  return { scroller, hasNew, scrollToEnd, onScroll }
}
