import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { FastifyBaseLogger } from 'fastify'
import type { ErrorInfo } from '#proto/error/v1/error_pb.js'
import type { Event, Frame, Opened } from '#proto/messaging/v1/messaging_pb.js'
import { encodeStreamedEvent } from '../../contract/event-stream.ts'
import type { Credentials } from '../core-calls/grant-cache.ts'
import { forwardAvailability } from './availability.ts'
import type { EventLink } from './event-link.ts'
import type { EventSink, StartPoint, StreamSubscription } from './event-sink.ts'
import { ENDING_EVENTS } from './event-stream-encoding.ts'

/** One subscription of the hub. */
export interface Entry<Reader> extends StreamSubscription {
  id: number
  credentials: Credentials
  /** Where the stream begins. Undefined once the subscription has opened. */
  start: StartPoint | undefined
  sink: EventSink<Reader>
  reader: Reader
  link: Link<Reader> | undefined
  /** Link to the core that last refused the subscription. */
  refusedBy?: Link<Reader> | undefined
  opened: boolean
  attached: boolean
  epoch: string
  position: number
  availability: string
  /** Time at which the subscription began to wait for a core. */
  waitingSince: number
  /** Type of the event, or public code of the error, that ended the stream. */
  endedBy?: string
}

/** A link to a core with its subscriptions, by their ids. */
export interface Link<Reader> {
  link: EventLink
  entries: Entries<Reader>
}

type Entries<Reader> = Map<number, Entry<Reader>>

/** Creates a function that passes what a core sent to the readers of its subscriptions. */
export function createFrameReader<Reader>({
  logger,
  onOpened,
  onClosed,
}: {
  logger: FastifyBaseLogger
  onOpened(entry: Entry<Reader>, opened: Opened): void
  onClosed(entry: Entry<Reader>, error: ErrorInfo | undefined): void
}): (entries: Entries<Reader>, frame: Frame) => void {
  /** Returns the subscriptions that have not ended. */
  const present = (entries: Entries<Reader>, ids: number[]) => ids.flatMap((id) => entries.get(id) ?? [])

  function forwardEvent(entries: Entries<Reader>, event: Event): void {
    const text = encodeStreamedEvent(event)
    if (text === undefined) logger.error({ sequence: event.sequence }, 'event has an unsafe id or name; skipping it')
    const bytes = text && Buffer.from(text)
    const ending = ENDING_EVENTS.has(event.type)
    for (const entry of present(entries, event.subscriptionIds)) {
      const isLogged = event.id !== ''
      if (isLogged && !ending && event.sequence <= entry.position) continue
      entry.position = Math.max(entry.position, event.sequence)
      if (ending) entry.endedBy = event.type
      if (bytes) entry.sink.write(entry.reader, bytes)
    }
  }

  return (entries, { frame }) => {
    switch (frame.case) {
      case 'opened': {
        const entry = entries.get(frame.value.subscriptionId)
        if (entry !== undefined) onOpened(entry, frame.value)
        return
      }
      case 'event':
        forwardEvent(entries, frame.value)
        return
      case 'replayed': {
        const { subscriptionId, sequence, events, text } = frame.value
        const entry = entries.get(subscriptionId)
        if (entry === undefined || sequence <= entry.position) return
        entry.position = sequence
        entry.sink.write(entry.reader, text, events)
        return
      }
      case 'advanced':
        for (const entry of present(entries, frame.value.subscriptionIds))
          entry.position = Math.max(entry.position, frame.value.sequence)
        return
      case 'availability': {
        const { subscriptionIds, data, occurredAt } = frame.value
        forwardAvailability(present(entries, subscriptionIds), data, timestampDate(occurredAt!))
        return
      }
      case 'paused': {
        const { subscriptionId } = frame.value
        const entry = entries.get(subscriptionId)
        entry?.sink.whenDrained(entry.reader, () => {
          // The subscription may have moved to another core under a new id.
          if (entry.id === subscriptionId) entry.link?.link.send({ case: 'continue', value: { subscriptionId } })
        })
        return
      }
      case 'closed': {
        const entry = entries.get(frame.value.subscriptionId)
        if (entry !== undefined) onClosed(entry, frame.value.error)
      }
    }
  }
}
