import type { Event } from '#proto/events/v1/events_pb.js'
import { type EventData, type FeedEventType, feedEventTypes } from '../../contract/event-kinds.ts'

type Data = { reference: string } & Record<string, unknown>

const ofConversation = ({ conversationId }: Event) => ({ reference: conversationId, conversationId })

const ofTag = (event: Event) => ({ ...ofConversation(event), tag: event.tagChange?.tag ?? '' })

function ofMessage({ conversationId, sequence, message }: Event) {
  const { messageId = '', body = '', author } = message?.message ?? {}
  const { displayName } = author ?? {}
  return { reference: messageId, messageId, conversationId, sequence, body, ...(displayName && { displayName }) }
}

function ofSession({ conversationId, visitor }: Event) {
  const { sessionId = '' } = visitor ?? {}
  return { reference: sessionId, sessionId, conversationId }
}

function ofDelivery({ delivery, leadId }: Event) {
  const { subscriptionId = '', deliveryId = '' } = delivery ?? {}
  return { reference: deliveryId, subscriptionId, deliveryId, ...(leadId && { leadId }) }
}

/** The data of each type of event. A field that the contract adds and this list lacks does not compile. */
const data: { [Type in FeedEventType]: (event: Event) => EventData<Type> } = {
  'lead.captured': ({ leadId, lead }) => ({ reference: leadId, ...lead?.fields }),
  'lead.delivered': ofDelivery,
  'lead.delivery-failed': ofDelivery,
  'workflow.handoff': (event) => ({
    ...ofDelivery(event),
    leadId: event.leadId,
    workflowId: event.workflowId,
    outcome: event.delivery?.outcome as EventData<'workflow.handoff'>['outcome'],
  }),
  'conversation.created': ofConversation,
  'conversation.assigned': (event) => ({
    ...ofConversation(event),
    displayName: event.assignment?.agent?.displayName ?? '',
  }),
  'conversation.unassigned': ofConversation,
  'conversation.closed': ofConversation,
  'conversation.reopened': ofConversation,
  'rating.given': (event) => {
    const { score = 0, comment } = event.rating ?? {}
    return { ...ofConversation(event), score, ...(comment !== undefined && { comment }) }
  },
  'conversation.tagged': ofTag,
  'conversation.untagged': ofTag,
  'message.visitor': ofMessage,
  'message.agent': ofMessage,
  'message.bot': ofMessage,
  'message.redacted': (event) => ({
    ...ofConversation(event),
    reference: event.redactedMessageId,
    messageId: event.redactedMessageId,
  }),
  'human.requested': ofConversation,
  'bot.stopped': ofConversation,
  'bot.resumed': ofConversation,
  'visitor.identified': ofSession,
  'visitor.left': (event) => ({
    ...ofSession(event),
    reason: event.visitor?.reason as EventData<'visitor.left'>['reason'],
  }),
  'subscription.disabled': ({ subscriptionDisabled }) => ({
    reference: subscriptionDisabled?.subscriptionId ?? '',
    subscriptionId: subscriptionDisabled?.subscriptionId ?? '',
    reason: subscriptionDisabled?.reason as EventData<'subscription.disabled'>['reason'],
  }),
  'subscription.failing': ({ delivery }) => ({
    reference: delivery?.subscriptionId ?? '',
    subscriptionId: delivery?.subscriptionId ?? '',
    deliveryId: delivery?.deliveryId ?? '',
  }),
}

/** Returns the `data` that a destination gets for an event of the feed. */
export function dataOf(event: Event): Data {
  const type = feedEventTypes.find((each) => each === event.type)
  // A newer core may send other types.
  return type ? data[type](event) : ofConversation(event)
}
