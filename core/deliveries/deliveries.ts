import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createBatchLoader } from '../concurrency/batch-loader.ts'
import { pageTokenAfter, readPageToken } from '../conversations/page-token.ts'
import { ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { LeadStore } from '../leads/lead-store.ts'
import { field, integer, operationId, validate } from '../rules.ts'
import type { DeliveryIntake } from './delivery-intake.ts'
import type { AttemptOutcome, DeliveryStatus } from './delivery-states.ts'
import type { Delivery, DeliveryStore } from './delivery-store.ts'
import type { LeadSubscription } from './lead-subscription-store.ts'
import type { Requester } from './lead-subscriptions.ts'
import type { KnownSubscription, LiveSubscriptions } from './live-subscriptions.ts'
import { newDelivery } from './new-delivery.ts'

/** One attempt as the API returns it (contract, section 5). */
export interface AttemptView extends Omit<AttemptOutcome, 'responseClass' | 'status' | 'claimId'> {
  attemptId: string
  deliveryId: string
  leadId: string
  subscriptionId: string
  attemptNumber: number
  status: DeliveryStatus
  responseClass?: AttemptOutcome['responseClass']
  nextRetryAt?: Date
  correlationId: string
  manual: boolean
  createdAt: Date
  updatedAt: Date
}

export interface DeliveryFilter {
  workspaceId: string
  subscriptionId?: string
  leadId?: string
  statuses?: DeliveryStatus[]
  limit?: number
  pageToken?: string
}

export interface Deliveries {
  /**
   * Sends a lead to a subscription's destination, once per idempotency key and workspace. Errors:
   * `LeadNotFound`, `SubscriptionNotFound`, `SubscriptionDisabled`, `IdempotencyConflict`,
   * `ValidationFailed`, `PayloadTooLarge`.
   */
  createAttempt(
    request: { leadId: string; subscriptionId: string; idempotencyKey: string },
    by: Requester,
  ): Promise<{ attempt: AttemptView; existing: boolean }>
  /**
   * Sends the delivery again at once and replaces an attempt that is scheduled. Errors:
   * `AttemptNotFound`, `AttemptNotRetryable`, `SubscriptionDisabled`, `IdempotencyConflict`,
   * `ValidationFailed`.
   */
  retryAttempt(
    request: { attemptId: string; idempotencyKey: string },
    by: Requester,
  ): Promise<{ attempt: AttemptView; existing: boolean }>
  /** Grouped by delivery, oldest first. Errors: `LeadNotFound`, `NotFound`, `ValidationFailed`. */
  listAttempts(of: { leadId: string } | { deliveryId: string }, by: Requester): Promise<AttemptView[]>
  /** Newest first. Errors: `ValidationFailed`. */
  list(filter: DeliveryFilter): Promise<{ deliveries: Delivery[]; nextPageToken?: string }>
}

const maxPage = 100
const defaultPage = 50
/** Limit of attempts per delivery, including manual ones. */
const maxAttempts = 50
const maxOfLead = 100

export function createDeliveries(dependencies: {
  store: DeliveryStore
  intake: DeliveryIntake
  leads: Pick<LeadStore, 'find' | 'findMany'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find'>
  /** Wakes waiting workers. */
  announce: () => void
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): Deliveries {
  const { store, intake, leads, liveSubscriptions, announce, settings, now } = dependencies

  // Batches lookups: calls made while a query is under way share the next query.
  const loadLead = createBatchLoader(async (ids) => byKey(await leads.findMany(ids), ({ leadId }) => leadId))

  /** The attempt that an earlier request with the same key created. */
  function findRepeated(key: string, inputHash: string, delivery: Delivery | undefined) {
    const operation = delivery?.operations.find((done) => done.key === key)
    if (!delivery || !operation) return undefined
    if (operation.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    const index = delivery.attempts.findIndex(({ attemptId }) => attemptId === operation.attemptId)
    return { attempt: viewAttempt(delivery, index), existing: true }
  }

  /** Errors: `SubscriptionNotFound`, `SubscriptionDisabled`. */
  function requireEnabled(known: KnownSubscription | undefined, workspaceId: string): KnownSubscription {
    if (known?.subscription.workspaceId !== workspaceId) throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
    if (known.subscription.status === 'disabled') throw new ServiceError(ErrorCode.SUBSCRIPTION_DISABLED)
    return known
  }

  return {
    async createAttempt({ leadId, subscriptionId, idempotencyKey }, by) {
      validate(field('/idempotencyKey', idempotencyKey, operationId))
      const [lead, known] = await Promise.all([loadLead(leadId), liveSubscriptions.find(subscriptionId)])
      if (!lead || !mayUse(by, lead)) throw new ServiceError(ErrorCode.LEAD_NOT_FOUND)
      const { workspaceId } = lead
      const key = operationKey(workspaceId, 'create', idempotencyKey)
      const inputHash = hashInput({ leadId, subscriptionId })
      /**
       * Throws if the delivery cannot be created. An earlier attempt with the same key takes
       * precedence over the error.
       */
      const build = (subscription: LeadSubscription) => {
        const { isTooLarge, ...delivery } = newDelivery({
          lead,
          subscription,
          operation: { key, inputHash },
          requestedBy: by.subject,
          at: new Date(now()),
          settings,
        })
        if (isTooLarge) throw new ServiceError(ErrorCode.PAYLOAD_TOO_LARGE)
        return delivery
      }
      let failure: unknown
      try {
        const to = requireEnabled(known, workspaceId)
        const delivery = build(to.subscription)
        // The unique index detects a repeated key, so no lookup is needed before the insert.
        if (await intake.add(delivery, to)) return { attempt: viewAttempt(delivery, 0), existing: false }
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        failure = error
      }
      const earlier = findRepeated(key, inputHash, await store.findByOperation(key))
      if (!earlier) throw failure ?? new ServiceError(ErrorCode.INTERNAL_ERROR)
      return earlier
    },

    async retryAttempt({ attemptId, idempotencyKey }, by) {
      validate(field('/idempotencyKey', idempotencyKey, operationId))
      const delivery = await store.findByAttempt(attemptId)
      if (!delivery || !mayUse(by, delivery)) throw new ServiceError(ErrorCode.ATTEMPT_NOT_FOUND)
      const { workspaceId, deliveryId, subscriptionId, status } = delivery
      const key = operationKey(workspaceId, 'retry', idempotencyKey)
      const inputHash = hashInput({ attemptId })
      const earlier = findRepeated(key, inputHash, await store.findByOperation(key))
      if (earlier) return earlier
      if (status === 'pending' || status === 'sending' || status === 'accepted') {
        throw new ServiceError(ErrorCode.ATTEMPT_NOT_RETRYABLE)
      }
      requireEnabled(await liveSubscriptions.find(subscriptionId), workspaceId)
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
      // Another request won: one with this key, or a retry with another key.
      const other = findRepeated(key, inputHash, await store.findByOperation(key))
      if (!other) throw new ServiceError(ErrorCode.ATTEMPT_NOT_RETRYABLE)
      return other
    },

    async listAttempts(of, by) {
      if ('leadId' in of) {
        const lead = await leads.find(of.leadId)
        if (!lead || !mayUse(by, lead)) throw new ServiceError(ErrorCode.LEAD_NOT_FOUND)
        return (await store.ofLead(of.leadId, maxOfLead)).reverse().flatMap(viewAttempts)
      }
      const delivery = await store.find(of.deliveryId)
      if (!delivery || !mayUse(by, delivery)) throw new ServiceError(ErrorCode.NOT_FOUND)
      return viewAttempts(delivery)
    },

    async list({ limit = defaultPage, pageToken, ...query }) {
      validate(field('/limit', limit, integer(1, maxPage)))
      const end = pageToken === undefined ? undefined : readPageToken(pageToken)
      const found = await store.list({ ...query, ...(end && { before: { createdAt: end.at, id: end.id } }) }, limit + 1)
      const deliveries = found.slice(0, limit)
      const last = deliveries.at(-1)
      if (found.length <= limit || !last) return { deliveries }
      return { deliveries, nextPageToken: pageTokenAfter({ at: last.createdAt, id: last.deliveryId }) }
    },
  }
}

export const viewAttempts = (delivery: Delivery): AttemptView[] =>
  delivery.attempts.map((_, index) => viewAttempt(delivery, index))

/**
 * The latest attempt has the status of its delivery; earlier ones have the status they ended with.
 */
function viewAttempt(delivery: Delivery, index: number): AttemptView {
  const { deliveryId, leadId, subscriptionId, attempts, dueAt } = delivery
  const attempt = attempts[index]
  if (!attempt) throw new ServiceError(ErrorCode.INTERNAL_ERROR)
  const { attemptId, correlationId, manual, createdAt, updatedAt, outcome } = attempt
  const isLatest = index === attempts.length - 1
  const { claimId: _, status: ended = delivery.status, ...rest } = outcome ?? {}
  const status = isLatest ? delivery.status : ended
  return {
    attemptId,
    deliveryId,
    leadId,
    subscriptionId,
    attemptNumber: index + 1,
    ...rest,
    status,
    ...(isLatest && status === 'retry_scheduled' && dueAt ? { nextRetryAt: dueAt } : {}),
    correlationId,
    manual,
    createdAt,
    updatedAt,
  }
}

/** A key is unique per route and workspace while the delivery is kept. */
function operationKey(workspaceId: string, route: 'create' | 'retry', idempotencyKey: string): string {
  return `${workspaceId} ${route} ${idempotencyKey}`
}

function mayUse(by: Requester, { workspaceId }: { workspaceId: string }): boolean {
  return by.workspaceId === undefined || by.workspaceId === workspaceId
}

const byKey = <T>(values: T[], keyOf: (value: T) => string) => new Map(values.map((value) => [keyOf(value), value]))
