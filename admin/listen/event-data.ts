import type { Event } from '#proto/events/v1/events_pb.js'

type Data = { reference: string } & Record<string, unknown>

/** Returns the `data` that a destination gets for an event of the feed. */
export function dataOf({ type, conversationId, sequence, leadId, ...event }: Event): Data {
  const { message, assignment, visitor, lead, delivery, workflowId, subscriptionDisabled } = event
  if (message?.message) {
    const { messageId, body, author } = message.message
    const displayName = author?.displayName
    return { reference: messageId, messageId, conversationId, sequence, body, ...(displayName && { displayName }) }
  }
  if (visitor) {
    const { sessionId, reason } = visitor
    return { reference: sessionId, sessionId, conversationId, ...(reason && { reason }) }
  }
  if (event.redactedMessageId !== '') {
    const messageId = event.redactedMessageId
    return { reference: messageId, messageId, conversationId }
  }
  if (event.tagChange) return { reference: conversationId, conversationId, tag: event.tagChange.tag }
  if (event.rating) {
    const { score, comment } = event.rating
    return { reference: conversationId, conversationId, score, ...(comment !== undefined && { comment }) }
  }
  if (delivery) {
    const { subscriptionId, deliveryId, outcome } = delivery
    if (type === 'subscription.failing') return { reference: subscriptionId, subscriptionId, deliveryId }
    const handoff = workflowId === '' ? {} : { workflowId, outcome }
    return { reference: deliveryId, ...handoff, subscriptionId, deliveryId, ...(leadId && { leadId }) }
  }
  if (subscriptionDisabled) {
    const { subscriptionId, reason } = subscriptionDisabled
    return { reference: subscriptionId, subscriptionId, reason }
  }
  if (leadId !== '') return { reference: leadId, ...lead?.fields }
  const displayName = assignment?.agent?.displayName
  return { reference: conversationId, conversationId, ...(displayName && { displayName }) }
}
