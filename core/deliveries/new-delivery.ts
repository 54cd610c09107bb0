import { randomUUID } from 'node:crypto'
import { type DeliveryEvent, type DeliveryEventType, deliveryEvents } from '../../contract/event-kinds.ts'
import { type FieldMapping, sampleFields, sentFields } from '../../contract/lead-fields.ts'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import type { Core } from '../core.ts'
import { newId } from '../ids.ts'
import type { Lead } from '../leads/model.ts'
import type { AttemptOutcome, Delivery, DeliveryOperation, NewDelivery } from './model.ts'
import { retainedUntil, suppressedOutcome } from './outcomes.ts'
import { defaultPolicy, isHook, type LeadSubscription, type Receives } from './subscription-model.ts'

/** What a delivery sends. */
export type DeliveryContent = DeliveryEvent &
  Pick<Delivery, 'leadId' | 'conversationId' | 'messageSequence'> & {
    /** Time of the event. Default: the creation of the delivery. */
    occurredAt?: Date
    isTest?: true
  }

/** Maximum size in bytes of a webhook body. */
const bodyMaxBytes = 65_536

/**
 * Creates a delivery with its first attempt. Its status is `held` if the subscription is disabled,
 * and `failed` if its body exceeds the limit.
 */
export function newDelivery(
  core: Core,
  options: {
    content: DeliveryContent
    subscription: LeadSubscription
    operation: Omit<DeliveryOperation, 'attemptId'>
    /**
     * Name of the operator or service that requested the delivery. Absent for automatic deliveries.
     */
    requestedBy?: string
    /**
     * If true, the delivery is stored as failed, because the person of the lead must not be
     * contacted.
     */
    isSuppressed?: boolean
  },
): NewDelivery & { isTooLarge: boolean } {
  const { content, subscription, operation, requestedBy, isSuppressed = false } = options
  const at = new Date(core.now())
  const deliveryId = newId('dlv')
  const attemptId = newId('att')
  const body = bodyOf(content, deliveryId, at)
  const isTooLarge = body.length > bodyMaxBytes
  const traceparent = traceparentOf()
  const hasFailed = isTooLarge || isSuppressed
  const isHeld = subscription.status === 'disabled' && !hasFailed
  const outcome: AttemptOutcome | undefined = isSuppressed
    ? suppressedOutcome
    : isTooLarge
      ? { status: 'failed', responseClass: 'rejected_payload' }
      : undefined
  return {
    isTooLarge,
    deliveryId,
    workspaceId: subscription.workspaceId,
    eventType: content.eventType,
    leadId: content.leadId,
    conversationId: content.conversationId,
    messageSequence: content.messageSequence,
    subscriptionId: subscription.subscriptionId,
    destination: subscription.subscriptionId,
    status: hasFailed ? 'failed' : isHeld ? 'held' : 'pending',
    attempts: [
      {
        attemptId,
        correlationId: randomUUID(),
        manual: requestedBy !== undefined,
        requestedBy,
        createdAt: at,
        updatedAt: at,
        outcome,
      },
    ],
    operations: [{ ...operation, attemptId }],
    createdAt: at,
    updatedAt: at,
    traceparent,
    ...(isHandedOff(content) && subscription.workflow?.workflowId && { workflow: subscription.workflow }),
    requestedAt: requestedBy === undefined ? undefined : at,
    // The body of a suppressed person is kept, so that the delivery can be retried after the person
    // is removed from the list.
    ...(!isTooLarge && { body }),
    ...(hasFailed && { deleteAt: retainedUntil(core, at), unannounced: true }),
    ...(!hasFailed && (isHeld ? { heldDueAt: at } : { dueAt: at })),
  }
}

/**
 * Returns the content of a lead's delivery. It has only the lead fields that the mapping names
 * (contract, section 5).
 */
export function leadContent(
  { leadId, fields }: Pick<Lead, 'leadId' | 'fields'>,
  mapping: FieldMapping,
  eventType: 'lead.ready-for-delivery' | 'lead.captured' = 'lead.ready-for-delivery',
): DeliveryContent {
  return { eventType, leadId, data: { reference: leadId, ...sentFields(fields, mapping) } }
}

/**
 * Returns the types of events of which a destination can get a sample. A lead can always be sent to a
 * subscription on request.
 */
export function sampleTypes({ policy = defaultPolicy, ...rest }: Receives): DeliveryEventType[] {
  return isHook(rest) ? policy.types : [...new Set([...policy.types, 'lead.ready-for-delivery' as const])]
}

/** Returns the content of a test delivery: a sample of an event, marked with `"test":true`. */
export function testContent(destination: Receives, type: DeliveryEventType): DeliveryContent {
  const { sentAs = {} } = destination
  const eventType = (type in sentAs && sentAs[type as keyof typeof sentAs]) || type
  const { example, ...kind } = deliveryEvents[eventType]
  const fields = 'hasLeadFields' in kind ? sampleFields(destination) : {}
  return { eventType, isTest: true, data: { ...example, ...fields } } as DeliveryContent
}

/** Whether the content is a lead: its end is announced, and a workflow may take it over. */
export const isHandedOff = ({ eventType, leadId }: Pick<Delivery, 'eventType' | 'leadId'>): boolean =>
  leadId !== undefined && eventType === 'lead.ready-for-delivery'

/** Creates the body. It is created once and stored, so that each attempt sends the same bytes. */
export function bodyOf({ eventType, data, isTest, occurredAt }: DeliveryContent, id: string, at: Date): Uint8Array {
  const contractVersion = deliveryEvents[eventType].version
  const head = { eventType, id, contractVersion, occurredAt: (occurredAt ?? at).toISOString() }
  return new TextEncoder().encode(JSON.stringify({ ...head, ...(isTest && { test: true }), data }))
}

/** Returns the body of a message's delivery without the text of the message. */
export function withoutText(body: Uint8Array, redactedAt: Date): Uint8Array {
  const { data, ...head } = JSON.parse(new TextDecoder().decode(body))
  return new TextEncoder().encode(JSON.stringify({ ...head, data: { ...data, body: '', redactedAt } }))
}
