import { randomUUID } from 'node:crypto'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { newId } from '../ids.ts'
import type { Lead } from '../leads/lead-store.ts'
import { deliveryBody } from './delivery-body.ts'
import type { DeliveryOperation, NewDelivery } from './delivery-store.ts'
import type { LeadSubscription } from './lead-subscription-store.ts'

/**
 * A delivery with its first attempt. Its status is `held` if the subscription is disabled, and
 * `failed` if its body exceeds the limit.
 */
export function newDelivery(options: {
  lead: Lead
  subscription: LeadSubscription
  operation: Omit<DeliveryOperation, 'attemptId'>
  /** Absent for automatic deliveries. */
  requestedBy?: string
  at: Date
  settings: { bodyMaxBytes: number; retentionDays: number }
}): NewDelivery & { isTooLarge: boolean } {
  const { lead, subscription, operation, requestedBy, at, settings } = options
  const deliveryId = newId('dlv')
  const attemptId = newId('att')
  const body = deliveryBody({ deliveryId, occurredAt: at, lead, mappedFields: subscription.mappedFields })
  const isTooLarge = body.length > settings.bodyMaxBytes
  const traceparent = traceparentOf()
  const isHeld = subscription.status === 'disabled' && !isTooLarge
  return {
    isTooLarge,
    deliveryId,
    workspaceId: lead.workspaceId,
    leadId: lead.leadId,
    subscriptionId: subscription.subscriptionId,
    status: isTooLarge ? 'failed' : isHeld ? 'held' : 'pending',
    attempts: [
      {
        attemptId,
        correlationId: randomUUID(),
        manual: requestedBy !== undefined,
        requestedBy,
        createdAt: at,
        updatedAt: at,
        ...(isTooLarge && { outcome: { status: 'failed', responseClass: 'rejected_payload' } }),
      },
    ],
    operations: [{ ...operation, attemptId }],
    createdAt: at,
    updatedAt: at,
    traceparent,
    ...(requestedBy === undefined ? {} : { requestedAt: at }),
    ...(isTooLarge
      ? { deleteAt: new Date(at.getTime() + settings.retentionDays * 86_400_000) }
      : { body, ...(isHeld ? { heldDueAt: at } : { dueAt: at }) }),
  }
}
