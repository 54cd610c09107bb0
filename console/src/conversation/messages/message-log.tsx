import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Fragment } from 'preact'
import type { Message, SubmittedForm } from '#proto/messaging/v1/messaging_pb.js'
import { pathOf } from '../../router.ts'
import { formatDay, isSameDay } from '../../time.ts'
import { Button, Fact, Facts, Icon, Loading, When } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'
import { useLogScroll } from './log-scroll.ts'
import { MessageItem, NoteItem, OutgoingItem } from './message-item.tsx'
import { buildTimeline, type TimelineItem } from './timeline.ts'

interface MessageLogProps {
  thread: Thread
  name: string
  me: string
  addToReply: (text: string) => void
  /** Sequence of the message to scroll to when it is loaded. */
  target: number | undefined
}

export function MessageLog({ thread, name, me, addToReply, target }: MessageLogProps) {
  const messages = thread.messages.value
  const outgoing = thread.outgoing.list.value
  const timeline = buildTimeline({
    messages,
    events: thread.events.value,
    notes: thread.notes.value,
    consent: thread.session.value?.consent,
    hasOlder: thread.hasOlder.value,
    me,
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
                  {item.form && <FormFields form={item.form} />}
                </li>
              )}
            </Fragment>
          ))}
          {outgoing.map((message) => (
            <OutgoingItem key={message.operationId} message={message} thread={thread} addToReply={addToReply} />
          ))}
        </ol>
        {typists.length > 0 && (
          <p class="typing-line">
            {typists.join(', ')} {typists.length > 1 ? 'are' : 'is'} typing…
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

function FormFields({ form: { leadId, fields } }: { form: SubmittedForm }) {
  return (
    <div class="form-entry">
      <Facts>
        {Object.entries(fields).map(([name, value]) => (
          <Fact key={name} name={name}>
            <bdi>{value}</bdi>
          </Fact>
        ))}
      </Facts>
      <a href={pathOf({ view: 'lead', leadId })}>Show lead</a>
    </div>
  )
}

function messageAt(timeline: readonly TimelineItem[], index: number): Message | undefined {
  const item = timeline[index]
  return item?.kind === 'message' ? item.message : undefined
}

function DayBefore({ at, before }: { at: number; before: number | undefined }) {
  if (before !== undefined && isSameDay(new Date(at), new Date(before))) return null
  return (
    <li class="day">
      <span>{formatDay(new Date(at), new Date())}</span>
    </li>
  )
}
