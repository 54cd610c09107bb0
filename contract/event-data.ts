import { type EventData, type FeedEventType, feedEvents, referenceOf } from './event-kinds.ts'

/** What is known of an event. The data of its kind has some of it. */
export interface EventFacts {
  conversationId?: string
  sequence?: number
  messageId?: string
  body?: string
  redactedAt?: Date
  /** The name of the author or of the assigned agent. */
  displayName?: string
  sentAt?: string
  sessionId?: string
  leftReason?: EventData<'visitor.left'>['reason']
  tag?: string
  score?: number
  comment?: string
  leadId?: string
  subscriptionId?: string
  deliveryId?: string
  workflowId?: string
  outcome?: EventData<'workflow.handoff'>['outcome']
  disabledReason?: EventData<'subscription.disabled'>['reason']
}

/**
 * Returns the data of an event as destinations get it: the facts that are fields of its kind. An unknown
 * fact is an empty text, or is left out if its field is optional. The caller adds fields of leads.
 */
export function eventData<Type extends FeedEventType>(type: Type, facts: EventFacts): EventData<Type> {
  const { data } = feedEvents[type]
  const required: string[] = data.required
  const { leftReason = 'closed', disabledReason = 'operator', outcome = 'failed', redactedAt } = facts
  const reason = type === 'visitor.left' ? leftReason : disabledReason
  const known: Record<string, unknown> = { ...facts, reason, outcome, redactedAt: redactedAt?.toISOString() }
  const fields = Object.entries(data.properties as Record<string, { type?: unknown }>).flatMap(([name, schema]) => {
    const value = known[name === 'reference' ? referenceOf(data) : name]
    const empty = schema.type === 'integer' ? 0 : ''
    return value || required.includes(name) ? [[name, value || empty]] : []
  })
  return Object.fromEntries(fields)
}
