import { randomUUID } from 'node:crypto'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { newId } from '../ids.ts'
import type { Lead } from '../leads/model.ts'
import type { DeliveryOperation, LeadSubscription, NewDelivery, SubscriptionNotice } from './model.ts'

/** Content of a delivery: the id of its lead, and a function that creates its body. */
export interface DeliveryContent {
  /** Empty if the delivery sends no lead. */
  leadId: string
  body(deliveryId: string, occurredAt: Date): Uint8Array
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
  const body = content.body(deliveryId, at)
  const isTooLarge = body.length > settings.bodyMaxBytes
  const traceparent = traceparentOf()
  const hasFailed = isTooLarge || isSuppressed
  const isHeld = subscription.status === 'disabled' && !hasFailed
  return {
    isTooLarge,
    deliveryId,
    workspaceId: subscription.workspaceId,
    leadId: content.leadId,
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
    requestedAt: requestedBy === undefined ? undefined : at,
    ...(hasFailed
      ? { deleteAt: new Date(at.getTime() + settings.retentionDays * 86_400_000) }
      : { body, ...(isHeld ? { heldDueAt: at } : { dueAt: at }) }),
  }
}

const leadEventType = 'lead.ready-for-delivery'
const contractVersion = '1.0'

/**
 * Returns the content of a lead's delivery. It has only the lead fields that the mapping names
 * (contract, section 5). It is created once per delivery and stored, so that each attempt sends the
 * same bytes.
 */
export const leadContent = (
  { leadId, fields }: Pick<Lead, 'leadId' | 'fields'>,
  { mappedFields }: Pick<LeadSubscription, 'mappedFields'>,
): DeliveryContent => ({
  leadId,
  body(id, occurredAt) {
    const mapped = mappedFields
      .filter((name) => Object.hasOwn(fields, name))
      .map((name) => [name, fields[name]] as const)
    const data = { reference: leadId, ...Object.fromEntries(mapped) }
    return envelope({ eventType: leadEventType, id, occurredAt, data })
  },
})

/**
 * Returns the content of a delivery to an operational endpoint. It contains ids and the reason, but
 * not the subscription's URL, because the URL may contain credentials.
 */
export const noticeContent = (
  { subscriptionId }: Pick<LeadSubscription, 'subscriptionId'>,
  notice: SubscriptionNotice,
): DeliveryContent => ({
  leadId: '',
  body(id) {
    const { kind: eventType, at: occurredAt } = notice
    // The event is about the delivery or, if it names none, about the subscription.
    const about =
      notice.kind === 'subscription.disabled'
        ? { reference: subscriptionId, subscriptionId, reason: notice.reason }
        : { reference: notice.deliveryId, subscriptionId, deliveryId: notice.deliveryId }
    return envelope({ eventType, id, occurredAt, data: about })
  },
})

/** Returns the content of a test delivery: a sample, marked with `"test":true`. */
export const testContent = ({
  mappedFields,
  isOperational,
}: Pick<LeadSubscription, 'mappedFields' | 'isOperational'>): DeliveryContent => ({
  leadId: '',
  body(id, occurredAt) {
    if (isOperational) {
      const data = { reference: 'sub_test', subscriptionId: 'sub_test', reason: 'operator' }
      return envelope({ eventType: 'subscription.disabled', id, occurredAt, data, isTest: true })
    }
    const sample = mappedFields.map((name) => [name, /mail/i.test(name) ? 'test@example.com' : 'Test'] as const)
    const data = { reference: 'lead_test', ...Object.fromEntries(sample) }
    return envelope({ eventType: leadEventType, id, occurredAt, data, isTest: true })
  },
})

/** Creates the body of a webhook. */
function envelope(event: {
  eventType: string
  id: string
  occurredAt: Date
  /** `reference` names the resource of the event (specification, section 2.7). */
  data: { reference: string } & Record<string, unknown>
  isTest?: boolean
}): Uint8Array {
  const { eventType, id, occurredAt, data, isTest = false } = event
  const head = { eventType, id, contractVersion, occurredAt: occurredAt.toISOString() }
  return new TextEncoder().encode(JSON.stringify({ ...head, ...(isTest && { test: true }), data }))
}
