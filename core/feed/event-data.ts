import type { EventData, FeedEventType } from '../../contract/event-kinds.ts'
import { type DeliveryContent, leadContent } from '../deliveries/new-delivery.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import { isHook } from '../destinations/policy-model.ts'
import type { FeedEvent } from './feed-reader.ts'
import { type FeedDelivery, reasonOf } from './model.ts'

type To = Pick<LeadSubscription, 'resource' | 'mappedFields' | 'sentNames' | 'sentAs'>

/** Stands for an id that every entry of the type has. */
const none = ''

const ofConversation = ({ entry: { conversationId = none } }: FeedEvent) => ({
  reference: conversationId,
  conversationId,
})

function ofMessage({ entry, event }: FeedEvent) {
  const { messageId = none, body = '', author } = event?.message ?? {}
  const { conversationId = none, sequence = 0 } = entry
  const { displayName } = author ?? {}
  return { reference: messageId, messageId, conversationId, sequence, body, ...(displayName && { displayName }) }
}

function ofSession({ entry: { conversationId = none }, event }: FeedEvent) {
  const { sessionId = none } = event ?? {}
  return { reference: sessionId, sessionId, conversationId }
}

const ofTag = (event: FeedEvent) => ({ ...ofConversation(event), tag: event.event?.data?.tag ?? '' })

const noDelivery: FeedDelivery = { subscriptionId: none, deliveryId: none, attemptId: none, outcome: 'failed' }

function ofDelivery({ entry: { delivery: { subscriptionId, deliveryId } = noDelivery, leadId } }: FeedEvent) {
  return { reference: deliveryId, subscriptionId, deliveryId, ...(leadId && { leadId }) }
}

/** Creates the data of each type of event. */
const data: { [Type in FeedEventType]: (event: FeedEvent) => EventData<Type> } = {
  'lead.captured': ({ entry: { leadId = none } }) => ({ reference: leadId }),
  'lead.delivered': ofDelivery,
  'lead.delivery-failed': ofDelivery,
  'workflow.handoff': (event) => {
    const { workflowId = none, delivery: { outcome } = noDelivery, leadId = none } = event.entry
    return { ...ofDelivery(event), workflowId, leadId, outcome }
  },
  'conversation.created': ofConversation,
  'conversation.assigned': (event) => ({
    ...ofConversation(event),
    displayName: event.event?.data?.agent?.displayName ?? '',
  }),
  'conversation.unassigned': ofConversation,
  'conversation.closed': ofConversation,
  'conversation.reopened': ofConversation,
  'rating.given': (event) => {
    const { score = 0, comment } = event.event?.data ?? {}
    return { ...ofConversation(event), score, ...(comment !== undefined && { comment }) }
  },
  'conversation.tagged': ofTag,
  'conversation.untagged': ofTag,
  'message.visitor': ofMessage,
  'message.agent': ofMessage,
  'message.bot': ofMessage,
  'message.redacted': (event) => {
    const messageId = event.event?.data?.messageId ?? none
    return { ...ofConversation(event), reference: messageId, messageId }
  },
  'human.requested': ofConversation,
  'bot.stopped': ofConversation,
  'bot.resumed': ofConversation,
  'visitor.identified': ofSession,
  'visitor.left': (event) => ({
    ...ofSession(event),
    reason: (event.event && reasonOf(event.event)) ?? 'closed',
  }),
  'subscription.disabled': ({ entry: { disabled } }) => ({
    reference: disabled?.subscriptionId ?? none,
    subscriptionId: disabled?.subscriptionId ?? none,
    reason: disabled?.reason ?? 'operator',
  }),
  'subscription.failing': ({ entry: { delivery: { subscriptionId, deliveryId } = noDelivery } }) => ({
    reference: subscriptionId,
    subscriptionId,
    deliveryId,
  }),
}

/** Returns what a destination gets for an event. Only lead subscriptions get fields of the lead. */
export function contentOf(event: FeedEvent, to: To): DeliveryContent {
  const { entry, lead } = event
  const { type, leadId, conversationId, occurredAt } = entry
  const eventType = to.sentAs?.[type] ?? type
  const content =
    type === 'lead.captured' && lead && !isHook(to)
      ? leadContent(lead, to, type)
      : ({ eventType, data: data[eventType](event) } as DeliveryContent)
  return { ...content, leadId, conversationId, occurredAt }
}
