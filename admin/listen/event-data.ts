import type { Event } from '#proto/events/v1/events_pb.js'
import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { feedEventTypes } from '../../contract/event-kinds.ts'

function factsOf(event: Event): EventFacts {
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

/** Returns the `data` that a destination gets for an event of the feed. */
export function dataOf(event: Event): { reference: string } & Record<string, unknown> {
  const { conversationId, lead } = event
  const type = feedEventTypes.find((each) => each === event.type)
  // A newer core may send other types.
  if (type === undefined) return { reference: conversationId, conversationId }
  const data = eventData(type, factsOf(event))
  return type === 'lead.captured' ? { ...data, ...lead?.fields } : { ...data }
}
