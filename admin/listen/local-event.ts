import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { Event } from '#proto/events/v1/events_pb.js'
import { deliveryEvents } from '../../contract/event-kinds.ts'
import { dataOf } from './event-data.ts'

/** An event that is sent to the local address. */
export interface LocalEvent {
  id: string
  type: string
  body: Uint8Array
  /** `--replay` with this value sends the event again, and those after it. */
  replayFrom: string
}

/** Events that follow one another, and where to continue after them. */
export interface LocalPage {
  events: LocalEvent[]
  /** The cursor after these events. `--replay` with it continues there. */
  next: string
}

/** Returns the event with the body that a destination would receive. */
export function localEvent({
  id,
  type,
  occurredAt,
  data,
  replayFrom,
}: {
  id: string
  type: string
  occurredAt: Date
  data: { reference: string } & Record<string, unknown>
  replayFrom: string
}): LocalEvent {
  const contractVersion = Object.hasOwn(deliveryEvents, type)
    ? deliveryEvents[type as keyof typeof deliveryEvents].version
    : '1.0'
  const envelope = { eventType: type, id, contractVersion, occurredAt: occurredAt.toISOString(), data }
  return { id, type, replayFrom, body: new TextEncoder().encode(JSON.stringify(envelope)) }
}

/** Returns an event of the feed. Its id is the same each time, because it is made from the cursor. */
export const fromFeed = (event: Event, replayFrom: string): LocalEvent =>
  localEvent({
    id: `evt_${event.cursor.replaceAll('.', '_')}`,
    type: event.type,
    occurredAt: timestampDate(event.occurredAt!),
    data: dataOf(event),
    replayFrom,
  })
