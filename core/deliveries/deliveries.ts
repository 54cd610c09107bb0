import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { DeliveryEventType } from '../../contract/event-kinds.ts'
import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import type { DeliveryStore } from '../delivery-stores/delivery-store.ts'
import type { Delivery, DeliveryStatus } from '../delivery-stores/model.ts'
import type { KnownSubscription, LiveSubscriptions } from '../destinations/live-subscriptions.ts'
import { isHook } from '../destinations/policy-model.ts'
import { inWorkspace, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { LeadStore } from '../leads/lead-store.ts'
import type { Lead } from '../leads/model.ts'
import type { Suppressions } from '../leads/suppressions.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, oneOf, operationId, validate } from '../rules.ts'
import { type AttemptView, viewAttempt, viewAttempts } from './attempt-view.ts'
import type { DeliveryIntake } from './delivery-intake.ts'
import type { Requester } from './lead-subscriptions.ts'
import { type DeliveryContent, leadContent, newDelivery, sampleTypes, testContent } from './new-delivery.ts'

interface DeliveryFilter {
  workspaceId: string
  subscriptionId?: string
  leadId?: string
  statuses?: DeliveryStatus[]
  since?: Date
  until?: Date
  limit?: number
  pageToken?: string
}

export interface Deliveries {
  /**
   * Sends a lead to a subscription's destination. A hook counts as unknown. Requests with the same
   * idempotency key and workspace create one delivery. Errors: `LeadNotFound`, `SubscriptionNotFound`,
   * `SubscriptionDisabled`, `IdempotencyConflict`, `ValidationFailed`, `PayloadTooLarge`.
   */
  createAttempt(
    request: { leadId: string; subscriptionId: string; idempotencyKey: string },
    by: Requester,
  ): Promise<{ attempt: AttemptView; existing: boolean }>
  /**
   * Sends a sample of an event that the destination receives, by default of the first one. Requests
   * with the same idempotency key and workspace create one delivery. Errors: `SubscriptionNotFound`,
   * `SubscriptionDisabled`, `IdempotencyConflict`, `ValidationFailed`.
   */
  sendTest(
    request: { subscriptionId: string; idempotencyKey: string; eventType?: string },
    by: Requester,
  ): Promise<{ attempt: AttemptView; existing: boolean }>
  /**
   * Adds a manual attempt to the delivery of the given attempt. The new attempt is due at once and
   * replaces the scheduled attempt, if any. With `ofLead`, an attempt of an event hook
   * counts as unknown. Errors: `AttemptNotFound`, `AttemptNotRetryable`, `SubscriptionDisabled`,
   * `VisitorSuppressed`, `IdempotencyConflict`, `ValidationFailed`.
   */
  retryAttempt(
    request: { attemptId: string; ofLead?: boolean; idempotencyKey: string },
    by: Requester,
  ): Promise<{ attempt: AttemptView; existing: boolean }>
  /**
   * Returns the attempts of a lead or of a delivery, grouped by delivery, oldest first. Errors:
   * `LeadNotFound` for a lead, `NotFound` for a delivery.
   */
  listAttempts(of: { leadId: string } | { deliveryId: string }, by: Requester): Promise<AttemptView[]>
  /** Returns a page of deliveries, newest first. Errors: `ValidationFailed`. */
  list(filter: DeliveryFilter): Promise<{ deliveries: Delivery[]; nextPageToken?: string }>
}

const maxPage = 100
const defaultPage = 50
/** Maximum number of attempts per delivery, including manual ones. */
export const maxAttempts = 50
const maxOfLead = 100

export function createDeliveries(dependencies: {
  store: DeliveryStore
  intake: DeliveryIntake
  leads: Pick<LeadStore, 'find' | 'findMany'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find'>
  suppressions: Pick<Suppressions, 'suppressedLeads'>
  /** Wakes waiting delivery workers. Called when a delivery may be due. */
  announce: () => void
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): Deliveries {
  const { suppressions, store, intake, leads, liveSubscriptions, announce, settings, now } = dependencies

  // Lookups that arrive while a query is running share the next query.
  const loadLead = createBatchLoader(async (ids) => byKey(await leads.findMany(ids), ({ leadId }) => leadId))

  /**
   * Returns the attempt that an earlier request with the same key created. Errors:
   * `IdempotencyConflict`.
   */
  function findRepeated(key: string, inputHash: string, delivery: Delivery | undefined) {
    const operation = delivery?.operations.find((done) => done.key === key)
    if (!delivery || !operation) return undefined
    if (operation.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    const index = delivery.attempts.findIndex(({ attemptId }) => attemptId === operation.attemptId)
    return { attempt: viewAttempt(delivery, index), existing: true }
  }

  /**
   * Returns the subscription if it is enabled. Errors: `SubscriptionNotFound`,
   * `SubscriptionDisabled`.
   */
  function requireEnabled(known: KnownSubscription | undefined, workspaceId: string): KnownSubscription {
    if (known?.subscription.workspaceId !== workspaceId) throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
    if (known.subscription.status === 'disabled') throw new ServiceError(ErrorCode.SUBSCRIPTION_DISABLED)
    return known
  }

  /** Throws `VisitorSuppressed` if the lead's person must not be contacted. */
  async function requireUnsuppressed(lead: Lead | undefined) {
    if (lead && (await suppressions.suppressedLeads([lead])).size > 0)
      throw new ServiceError(ErrorCode.VISITOR_SUPPRESSED)
  }

  /**
   * Adds the delivery that `prepare` describes. If an earlier request with the same key added a
   * delivery, returns the attempt of that delivery, even if `prepare` throws now.
   */
  async function addOnce(
    operation: { key: string; inputHash: string },
    { subject }: Requester,
    prepare: () => Promise<{ to: KnownSubscription; content: DeliveryContent }>,
  ) {
    let failure: unknown
    try {
      const { to, content } = await prepare()
      const { isTooLarge, ...delivery } = newDelivery({
        content,
        subscription: to.subscription,
        operation,
        requestedBy: subject,
        at: new Date(now()),
        settings,
      })
      if (isTooLarge) throw new ServiceError(ErrorCode.PAYLOAD_TOO_LARGE)
      // The unique index detects a repeated key, so no lookup is needed before the insert.
      if (await intake.add(delivery, to)) return { attempt: viewAttempt(delivery, 0), existing: false }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      failure = error
    }
    const earlier = findRepeated(operation.key, operation.inputHash, await store.findByOperation(operation.key))
    if (!earlier) throw failure ?? new ServiceError(ErrorCode.INTERNAL_ERROR)
    return earlier
  }

  return {
    async createAttempt({ leadId, subscriptionId, idempotencyKey }, by) {
      validate(field('/idempotencyKey', idempotencyKey, operationId))
      const [found, known] = await Promise.all([loadLead(leadId), liveSubscriptions.find(subscriptionId)])
      const lead = inWorkspace(found, by.workspaceId, ErrorCode.LEAD_NOT_FOUND)
      const { workspaceId } = lead
      const operation = {
        key: operationKey(workspaceId, 'create', idempotencyKey),
        inputHash: hashInput({ leadId, subscriptionId }),
      }
      return addOnce(operation, by, async () => {
        const to = requireEnabled(known, workspaceId)
        if (isHook(to.subscription)) throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
        await requireUnsuppressed(lead)
        return { to, content: leadContent(lead, to.subscription) }
      })
    },

    async sendTest({ subscriptionId, idempotencyKey, eventType }, by) {
      validate(field('/idempotencyKey', idempotencyKey, operationId))
      const known = await liveSubscriptions.find(subscriptionId)
      const subscription = inWorkspace(known?.subscription, by.workspaceId, ErrorCode.SUBSCRIPTION_NOT_FOUND)
      const operation = {
        key: operationKey(subscription.workspaceId, 'test', idempotencyKey),
        inputHash: hashInput({ subscriptionId, eventType }),
      }
      return addOnce(operation, by, async () => {
        const types = sampleTypes(subscription)
        validate(field('/eventType', eventType as DeliveryEventType | undefined, oneOf(...types)))
        const type = types.find((each) => each === eventType) ?? types[0]!
        const to = requireEnabled(known, subscription.workspaceId)
        return { to, content: testContent(to.subscription, type) }
      })
    },

    async retryAttempt({ attemptId, ofLead, idempotencyKey }, by) {
      validate(field('/idempotencyKey', idempotencyKey, operationId))
      const found = await store.findByAttempt(attemptId)
      const delivery = inWorkspace(found, by.workspaceId, ErrorCode.ATTEMPT_NOT_FOUND)
      const { workspaceId, deliveryId, subscriptionId, status } = delivery
      const known = await liveSubscriptions.find(subscriptionId)
      if (ofLead && known && isHook(known.subscription)) throw new ServiceError(ErrorCode.ATTEMPT_NOT_FOUND)
      const key = operationKey(workspaceId, 'retry', idempotencyKey)
      const inputHash = hashInput({ attemptId })
      const earlier = findRepeated(key, inputHash, await store.findByOperation(key))
      if (earlier) return earlier
      if (status === 'pending' || status === 'sending' || status === 'accepted') {
        throw new ServiceError(ErrorCode.ATTEMPT_NOT_RETRYABLE)
      }
      requireEnabled(known, workspaceId)
      if (delivery.leadId !== undefined) await requireUnsuppressed(await leads.find(delivery.leadId))
      const createdAt = new Date(now())
      const attempt = {
        attemptId: newId('att'),
        correlationId: randomUUID(),
        manual: true,
        requestedBy: by.subject,
        createdAt,
        updatedAt: createdAt,
      }
      const operation = { key, inputHash, attemptId: attempt.attemptId }
      const retried = await store.retry(deliveryId, { attempt, operation, maxAttempts })
      if (retried) {
        announce()
        return { attempt: viewAttempt(retried, retried.attempts.length - 1), existing: false }
      }
      // Another request changed the delivery first: a repeat with the same key, or a retry with
      // another key.
      const other = findRepeated(key, inputHash, await store.findByOperation(key))
      if (!other) throw new ServiceError(ErrorCode.ATTEMPT_NOT_RETRYABLE)
      return other
    },

    async listAttempts(of, by) {
      if ('leadId' in of) {
        inWorkspace(await leads.find(of.leadId), by.workspaceId, ErrorCode.LEAD_NOT_FOUND)
        return (await store.ofLead(of.leadId, maxOfLead)).reverse().flatMap(viewAttempts)
      }
      return viewAttempts(inWorkspace(await store.find(of.deliveryId), by.workspaceId))
    },

    async list({ limit = defaultPage, pageToken, ...query }) {
      const { since, until } = query
      validate(
        field('/limit', limit, integer(1, maxPage)),
        since && until && since >= until ? { path: '/createdUntil', rule: 'minimum' } : undefined,
      )
      const place = `deliveries ${query.workspaceId}`
      const end = readPageToken(place, pageToken)
      const found = await store.list({ ...query, before: end && { createdAt: end.at, id: end.id } }, limit + 1)
      const { page, nextPageToken } = cutPage(found, limit, place, ({ createdAt, deliveryId }) => ({
        at: createdAt,
        id: deliveryId,
      }))
      return { deliveries: page, nextPageToken }
    },
  }
}

/**
 * Returns the key under which a request is stored. It is unique per workspace, route and
 * idempotency key while the delivery exists.
 */
function operationKey(workspaceId: string, route: 'create' | 'retry' | 'test', idempotencyKey: string): string {
  return `${workspaceId} ${route} ${idempotencyKey}`
}
