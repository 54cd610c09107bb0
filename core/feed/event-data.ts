import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { sentFields } from '../../contract/lead-fields.ts'
import { type DeliveryContent, leadContent } from '../deliveries/new-delivery.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import { isHook } from '../destinations/policy-model.ts'
import type { FeedEvent } from './feed-reader.ts'
import { reasonOf } from './model.ts'

type To = Pick<LeadSubscription, 'resource' | 'mappedFields' | 'sentNames' | 'sentAs'>

function factsOf({ entry, event }: FeedEvent): EventFacts {
  const { conversationId, sequence, leadId, workflowId, delivery, disabled } = entry
  const { message, data, sessionId } = event ?? {}
  return {
    conversationId,
    sequence,
    messageId: message?.messageId ?? data?.messageId,
    body: message?.body,
    redactedAt: message?.redactedAt,
    displayName: message?.author.displayName ?? data?.agent?.displayName,
    sentAt: data?.sentAt,
    sessionId,
    leftReason: event && reasonOf(event),
    tag: data?.tag,
    score: data?.score,
    comment: data?.comment,
    leadId,
    subscriptionId: delivery?.subscriptionId ?? disabled?.subscriptionId,
    deliveryId: delivery?.deliveryId,
    workflowId,
    outcome: delivery?.outcome,
    disabledReason: disabled?.reason,
  }
}

/** Returns the mapped fields of the address that belongs to an unseen message. */
const fieldsOf = ({ entry, lead }: FeedEvent, to: To) =>
  entry.type === 'message.unseen' && lead && !isHook(to) ? sentFields(lead.fields, to) : {}

/** Returns what a destination gets for an event. Only lead subscriptions get fields of the lead. */
export function contentOf(event: FeedEvent, to: To): DeliveryContent {
  const { entry, lead } = event
  const { type, leadId, conversationId, sequence, occurredAt } = entry
  const eventType = to.sentAs?.[type] ?? type
  const content =
    type === 'lead.captured' && lead && !isHook(to)
      ? leadContent(lead, to, type)
      : ({ eventType, data: { ...eventData(eventType, factsOf(event)), ...fieldsOf(event, to) } } as DeliveryContent)
  return { ...content, leadId, conversationId, messageSequence: event.event?.message && sequence, occurredAt }
}
