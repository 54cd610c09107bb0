import { toJson } from '@bufbuild/protobuf'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import { type Event, EventSchema } from '#proto/events/v1/events_pb.js'
import { deliveryEvents } from '../../contract/event-kinds.ts'

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
  /** Value of `--replay` that continues after these events. */
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
export function fromFeed(event: Event, replayFrom: string): LocalEvent {
  const { cursor, type, occurredAt, conversationId, leadId, subscriptionDisabled } = event
  const content = toJson(EventSchema, event) as Record<string, unknown>
  const { cursor: _, type: __, occurredAt: ___, subscriptionDisabled: disabled, ...data } = content
  return localEvent({
    id: `evt_${cursor.replaceAll('.', '_')}`,
    type,
    occurredAt: timestampDate(occurredAt!),
    data: {
      reference: leadId || conversationId || subscriptionDisabled?.subscriptionId || cursor,
      ...data,
      ...(disabled as object | undefined),
    },
    replayFrom,
  })
}
