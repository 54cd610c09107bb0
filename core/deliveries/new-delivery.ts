import { randomUUID } from 'node:crypto'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { newId } from '../ids.ts'
import type { Lead } from '../leads/model.ts'
import type { DeliveryOperation, LeadSubscription, NewDelivery } from './model.ts'

/**
 * Creates a delivery with its first attempt. Its status is `held` if the subscription is disabled,
 * and `failed` if its body exceeds the limit.
 */
export function newDelivery(options: {
  lead: Lead
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
  const { lead, subscription, operation, requestedBy, at, settings, isSuppressed = false } = options
  const deliveryId = newId('dlv')
  const attemptId = newId('att')
  const body = deliveryBody({ deliveryId, occurredAt: at, lead, mappedFields: subscription.mappedFields })
  const isTooLarge = body.length > settings.bodyMaxBytes
  const traceparent = traceparentOf()
  const hasFailed = isTooLarge || isSuppressed
  const isHeld = subscription.status === 'disabled' && !hasFailed
  return {
    isTooLarge,
    deliveryId,
    workspaceId: lead.workspaceId,
    leadId: lead.leadId,
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
 * Creates the body of a webhook. It contains only the lead fields that the mapping names (contract,
 * section 5). It is created once per delivery and stored, so that each attempt sends the same
 * bytes.
 */
export function deliveryBody(delivery: {
  deliveryId: string
  occurredAt: Date
  lead: Pick<Lead, 'leadId' | 'fields'>
  mappedFields: string[]
}): Uint8Array {
  const { deliveryId, occurredAt, lead, mappedFields } = delivery
  const mapped = mappedFields
    .filter((name) => Object.hasOwn(lead.fields, name))
    .map((name) => [name, lead.fields[name]] as const)
  return new TextEncoder().encode(
    JSON.stringify({
      eventType: leadEventType,
      id: deliveryId,
      contractVersion,
      occurredAt: occurredAt.toISOString(),
      data: Object.fromEntries([['reference', lead.leadId], ...mapped]),
    }),
  )
}
