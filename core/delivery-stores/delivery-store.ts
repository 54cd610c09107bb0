import type { Binary, Collection, Filter } from 'mongodb'
import type { FeedFields } from '../destinations/handoff-model.ts'
import type { SubscriptionAuditEntry } from '../destinations/model.ts'
import { isDuplicateKey } from '../mongodb/faults.ts'
import { insertEach } from '../mongodb/insert-each.ts'
import {
  type Delivery,
  type DeliveryAttempt,
  type DeliveryQuery,
  type DeliveryStatus,
  deliveryStatuses,
  type ManualRetry,
  type NewDelivery,
  type QueueFields,
} from './model.ts'
import { queueAgain } from './queue-again-store.ts'

export type DeliveryDocument = Omit<Delivery, 'deliveryId'> &
  QueueFields &
  FeedFields & {
    _id: string
    /**
     * Body of the webhook. Removed once the delivery is accepted, because it is never sent again.
     */
    body?: Binary | Uint8Array
  }

export interface DeliveryStore {
  /** Inserts deliveries. The result at each index is false for a duplicate operation. */
  insertEach(deliveries: NewDelivery[]): Promise<PromiseSettledResult<boolean>[]>
  find(deliveryId: string): Promise<Delivery | undefined>
  findByAttempt(attemptId: string): Promise<Delivery | undefined>
  findByOperation(key: string): Promise<Delivery | undefined>
  /** Returns deliveries, newest first. */
  list(query: DeliveryQuery, limit: number): Promise<Delivery[]>
  ofLead(leadId: string, limit: number): Promise<Delivery[]>
  /**
   * Adds a manual attempt, due at once, if a retry of the delivery is scheduled, or if the delivery
   * failed or was dead-lettered. Returns undefined if the delivery is in another state, already has
   * `maxAttempts` attempts, or already has an attempt with this operation key.
   */
  retry(deliveryId: string, retry: ManualRetry): Promise<Delivery | undefined>
  /** Returns audit entries of the manual requests that created attempts, newest first. */
  requests(subscriptionId: string, limit: number): Promise<SubscriptionAuditEntry[]>
}

const withoutBody = { projection: { body: 0 } } as const

export function createDeliveryStore({ deliveries }: { deliveries: Collection<DeliveryDocument> }): DeliveryStore {
  async function findOne(filter: Filter<DeliveryDocument>) {
    const found = await deliveries.findOne(filter, withoutBody)
    return found ? toDelivery(found) : undefined
  }

  async function findMany(filter: Filter<DeliveryDocument>, limit: number, hint: string) {
    const found = deliveries
      .find(filter, { ...withoutBody, hint, batchSize: limit + 1 })
      .sort({ createdAt: -1, _id: -1 })
      .limit(limit)
    return (await found.toArray()).map(toDelivery)
  }

  /**
   * Returns deliveries with these statuses, newest first. Reads one status after another, in the
   * order in which a delivery passes through them. So a delivery whose status changes meanwhile is
   * found with its new status.
   */
  async function findByStatus(
    filter: Filter<DeliveryDocument>,
    statuses: readonly DeliveryStatus[],
    limit: number,
    hint: string,
  ) {
    const found = new Map<string, Delivery>()
    for (const status of deliveryStatuses.filter((each) => statuses.includes(each)))
      for (const delivery of await findMany({ ...filter, status }, limit, hint))
        found.set(delivery.deliveryId, delivery)
    return [...found.values()].sort(newestFirst).slice(0, limit)
  }

  return {
    insertEach: (missing) => insertEach(deliveries, missing.map(toDocument)),

    find: (deliveryId) => findOne({ _id: deliveryId }),
    findByAttempt: (attemptId) => findOne({ 'attempts.attemptId': attemptId }),
    findByOperation: (key) => findOne({ 'operations.key': key }),

    list({ workspaceId, subscriptionId, leadId, statuses, since, until, before }, limit) {
      const filter: Filter<DeliveryDocument> = {
        workspaceId,
        subscriptionId,
        leadId,
        createdAt: createdWithin(since, until, before?.createdAt),
        $or: before && [{ createdAt: { $lt: before.createdAt } }, { _id: { $lt: before.id } }],
      }
      // A lead has so few deliveries that a query can read them all.
      if (leadId !== undefined) return findMany({ ...filter, status: statuses && { $in: statuses } }, limit, 'by_lead')
      const index = subscriptionId === undefined ? 'by_workspace_status' : 'by_subscription_status'
      return findByStatus(filter, statuses ?? deliveryStatuses, limit, index)
    },

    ofLead: (leadId, limit) => findMany({ leadId }, limit, 'by_lead'),

    async retry(deliveryId, { attempt, operation, maxAttempts }) {
      const { createdAt } = attempt
      const retried = await deliveries
        .findOneAndUpdate(
          {
            _id: deliveryId,
            $or: [
              { status: { $in: ['retry_scheduled', 'failed', 'dead_lettered'] } },
              { status: 'held', next: { $exists: true } },
            ],
            body: { $exists: true },
            'operations.key': { $ne: operation.key },
            [`attempts.${maxAttempts - 1}`]: { $exists: false },
          },
          queueAgain({ at: createdAt, dueAt: createdAt, requestedAt: createdAt, attempt, operation }),
          { returnDocument: 'after', ...withoutBody },
        )
        .catch((error: unknown) => {
          // A concurrent request with the same key has created an attempt of another delivery.
          if (isDuplicateKey(error)) return null
          throw error
        })
      return retried ? toDelivery(retried) : undefined
    },

    async requests(subscriptionId, limit) {
      const found = await deliveries
        .find({ destination: subscriptionId, requestedAt: { $exists: true } }, { projection: { attempts: 1 } })
        .sort({ requestedAt: -1 })
        .limit(limit)
        .toArray()
      return found
        .flatMap(({ attempts }) => attempts.map(toRequest))
        .filter((entry) => entry !== undefined)
        .sort((a, b) => b.at.getTime() - a.at.getTime())
        .slice(0, limit)
    },
  }
}

/** Returns the condition on the time of creation, or undefined if every time matches. */
function createdWithin(since: Date | undefined, until: Date | undefined, latest: Date | undefined) {
  const bounds = Object.entries({ $gte: since, $lt: until, $lte: latest }).filter(([, time]) => time !== undefined)
  return bounds.length > 0 ? Object.fromEntries(bounds) : undefined
}

function newestFirst(a: Delivery, b: Delivery): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || (a.deliveryId < b.deliveryId ? 1 : -1)
}

function toRequest(attempt: DeliveryAttempt, index: number): SubscriptionAuditEntry | undefined {
  const { requestedBy, attemptId, createdAt } = attempt
  if (requestedBy === undefined) return undefined
  return { at: createdAt, actor: requestedBy, action: index === 0 ? 'attempt_created' : 'attempt_retried', attemptId }
}

function toDocument({ deliveryId, ...rest }: NewDelivery): DeliveryDocument {
  return { _id: deliveryId, ...rest, destination: rest.subscriptionId }
}

export function toDelivery(document: DeliveryDocument): Delivery {
  const { _id, workspaceId, subscriptionId, status, attempts, operations, createdAt, updatedAt } = document
  const { eventType, leadId, conversationId, requestedAt, dueAt, handoff } = document
  return {
    deliveryId: _id,
    workspaceId,
    eventType,
    leadId,
    conversationId,
    subscriptionId,
    status,
    attempts,
    operations,
    createdAt,
    updatedAt,
    requestedAt,
    dueAt,
    handoff,
  }
}

/**
 * Matches every destination. Without this condition, queries do not use the indexes that begin with
 * the destination.
 */
export const anyDestination = { destination: { $gt: '' } }
