import { randomUUID } from 'node:crypto'
import { type DeliveryEvent, deliveryEvents } from '../../contract/event-kinds.ts'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { newId } from '../ids.ts'
import type { Lead } from '../leads/model.ts'
import type { DeliveryOperation, LeadSubscription, NewDelivery, SubscriptionNotice } from './model.ts'

/** What a delivery sends. */
export type DeliveryContent = DeliveryEvent & {
  /** Empty if the delivery sends no lead. */
  leadId: string
  /** Time of the event. Default: the creation of the delivery. */
  occurredAt?: Date
  isTest?: true
}

/**
 * Creates a delivery with its first attempt. Its status is `held` if the subscription is disabled,
 * and `failed` if its body exceeds the limit.
 */
export function newDelivery(options: {
  content: DeliveryContent
  subscription: LeadSubscription
  operation: Omit<DeliveryOperation, 'attemptId'>
  /**
   * Name of the operator or service that requested the delivery. Absent for automatic deliveries.
   */
  requestedBy?: string
  at: Date
  /**
   * If true, the delivery is stored as failed, because the person of the lead must not be
   * contacted.
   */
  isSuppressed?: boolean
  settings: { bodyMaxBytes: number; retentionDays: number }
}): NewDelivery & { isTooLarge: boolean } {
  const { content, subscription, operation, requestedBy, at, settings, isSuppressed = false } = options
  const deliveryId = newId('dlv')
  const attemptId = newId('att')
  const body = bodyOf(content, deliveryId, at)
  const isTooLarge = body.length > settings.bodyMaxBytes
  const traceparent = traceparentOf()
  const hasFailed = isTooLarge || isSuppressed
  const isHeld = subscription.status === 'disabled' && !hasFailed
  return {
    isTooLarge,
    deliveryId,
    workspaceId: subscription.workspaceId,
    leadId: content.leadId,
    eventType: content.eventType,
    subscriptionId: subscription.subscriptionId,
    status: hasFailed ? 'failed' : isHeld ? 'held' : 'pending',
    attempts: [
      {
        attemptId,
        correlationId: randomUUID(),
        manual: requestedBy !== undefined,
        requestedBy,
        createdAt: at,
        updatedAt: at,
        outcome: isTooLarge ? { status: 'failed', responseClass: 'rejected_payload' } : undefined,
      },
    ],
    operations: [{ ...operation, attemptId }],
    createdAt: at,
    updatedAt: at,
    traceparent,
    ...(content.leadId !== '' && subscription.workflow?.workflowId && { workflow: subscription.workflow }),
    requestedAt: requestedBy === undefined ? undefined : at,
    ...(hasFailed
      ? { deleteAt: new Date(at.getTime() + settings.retentionDays * 86_400_000), unannounced: true }
      : { body, ...(isHeld ? { heldDueAt: at } : { dueAt: at }) }),
  }
}

/**
 * Returns the content of a lead's delivery. It has only the lead fields that the mapping names
 * (contract, section 5).
 */
export function leadContent(
  { leadId, fields }: Pick<Lead, 'leadId' | 'fields'>,
  { mappedFields }: Pick<LeadSubscription, 'mappedFields'>,
): DeliveryContent {
  const mapped = mappedFields.filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name]] as const)
  return { eventType: 'lead.ready-for-delivery', leadId, data: { reference: leadId, ...Object.fromEntries(mapped) } }
}

/**
 * Returns the content of a delivery to an operational endpoint. It contains ids and the reason, but
 * not the subscription's URL, because the URL may contain credentials.
 */
export function noticeContent(
  { subscriptionId }: Pick<LeadSubscription, 'subscriptionId'>,
  notice: SubscriptionNotice,
): DeliveryContent {
  const about = { leadId: '', occurredAt: notice.at }
  // The event is about the delivery or, if it names none, about the subscription.
  if (notice.kind === 'subscription.disabled') {
    const data = { reference: subscriptionId, subscriptionId, reason: notice.reason }
    return { ...about, eventType: notice.kind, data }
  }
  const { kind: eventType, deliveryId } = notice
  return { ...about, eventType, data: { reference: deliveryId, subscriptionId, deliveryId } }
}

/** Returns the content of a test delivery: a sample, marked with `"test":true`. */
export function testContent({
  mappedFields,
  isOperational,
}: Pick<LeadSubscription, 'mappedFields' | 'isOperational'>): DeliveryContent {
  const test = { leadId: '', isTest: true } as const
  if (isOperational)
    return { ...test, eventType: 'subscription.disabled', data: deliveryEvents['subscription.disabled'].example }
  const sample = mappedFields.map((name) => [name, /mail/i.test(name) ? 'test@example.com' : 'Test'] as const)
  const { example } = deliveryEvents['lead.ready-for-delivery']
  return { ...test, eventType: 'lead.ready-for-delivery', data: { ...example, ...Object.fromEntries(sample) } }
}

/** Creates the body. It is created once and stored, so that each attempt sends the same bytes. */
export function bodyOf({ eventType, data, isTest, occurredAt }: DeliveryContent, id: string, at: Date): Uint8Array {
  const contractVersion = deliveryEvents[eventType].version
  const head = { eventType, id, contractVersion, occurredAt: (occurredAt ?? at).toISOString() }
  return new TextEncoder().encode(JSON.stringify({ ...head, ...(isTest && { test: true }), data }))
}
