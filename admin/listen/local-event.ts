import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { Event } from '#proto/events/v1/events_pb.js'
import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { deliveryEvents, feedEventTypes } from '../../contract/event-kinds.ts'

export interface LocalEvent {
  id: string
  type: string
  body: Uint8Array
  /** `--replay` with this value sends the event again, and those after it. */
  replayFrom: string
}

export interface LocalPage {
  events: LocalEvent[]
  /** Cursor after these events. `--replay` with this value continues there. */
  next: string
}

export function localEvent(event: {
  id: string
  type: string
  occurredAt: Date
  data: { reference: string } & Record<string, unknown>
  replayFrom: string
}): LocalEvent {
  const { id, type, occurredAt, data, replayFrom } = event
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

function factsOf(event: Event) {
  const { conversationId, sequence, leadId, workflowId, delivery, subscriptionDisabled: disabled } = event
  const message = event.message?.message
  return {
    conversationId,
    sequence,
    messageId: message?.messageId ?? event.redactedMessageId,
    body: message?.body,
    displayName: message ? message.author?.displayName : event.assignment?.agent?.displayName,
    sessionId: event.visitor?.sessionId,
    leftReason: event.visitor?.reason as EventFacts['leftReason'],
    tag: event.tagChange?.tag,
    score: event.rating?.score,
    comment: event.rating?.comment,
    leadId,
    subscriptionId: delivery?.subscriptionId ?? disabled?.subscriptionId,
    deliveryId: delivery?.deliveryId,
    workflowId,
    outcome: delivery?.outcome as EventFacts['outcome'],
    disabledReason: disabled?.reason as EventFacts['disabledReason'],
  }
}

function dataOf(event: Event): { reference: string } & Record<string, unknown> {
  const { conversationId, lead } = event
  const type = feedEventTypes.find((each) => each === event.type)
  // A newer core may send other types.
  if (type === undefined) return { reference: conversationId, conversationId }
  const data = eventData(type, factsOf(event))
  return type === 'lead.captured' ? { ...data, ...lead?.fields } : { ...data }
}
