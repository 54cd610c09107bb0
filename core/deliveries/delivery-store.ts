import type { Binary, Collection, Filter } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import { insertEach } from '../database/insert-each.ts'
import type { AttemptOutcome, DeliveryStatus } from './delivery-states.ts'
import type { SubscriptionAuditEntry } from './lead-subscription-store.ts'

/** One attempt, numbered by its place in the list. The latest has the status of its delivery. */
export interface DeliveryAttempt {
  attemptId: string
  correlationId: string
  /** Requested by a person or service, not scheduled. */
  manual: boolean
  /** The requester; absent for automatic attempts. */
  requestedBy?: string
  createdAt: Date
  updatedAt: Date
  outcome?: AttemptOutcome
}

/** A request that created an attempt; stored once even if repeated. */
export interface DeliveryOperation {
  /** Workspace, route and idempotency key: unique over all deliveries. */
  key: string
  inputHash: string
  attemptId: string
}

/** One lead on its way to one subscription's destination, with all attempts. */
export interface Delivery {
  deliveryId: string
  workspaceId: string
  leadId: string
  subscriptionId: string
  status: DeliveryStatus
  attempts: DeliveryAttempt[]
  operations: DeliveryOperation[]
  createdAt: Date
  updatedAt: Date
  /** When an attempt was last requested manually. */
  requestedAt?: Date
  /**
   * When a worker must act next: now, at the next retry, or when the lease expires. Absent if
   * nothing is to do, which keeps the queue's indexes small.
   */
  dueAt?: Date
}

/** The lease of a delivery that is being sent. */
export interface DeliveryClaim {
  claimId: string
  workerId: string
  at: Date
  /** When the subscription was read. The answer does not count against settings made after that. */
  knownAt: Date
  /** The previous claim expired without a result. */
  tookOver?: boolean
}

/** Fields that only the queue uses. */
export interface QueueFields {
  /** Copy of the subscription id for the queue's indexes. */
  destination: string
  claim?: DeliveryClaim
  /** The trace in which the delivery was created (W3C Trace Context), if any. */
  traceparent?: string
  /** The scheduled automatic attempt. */
  next?: { attemptId: string; correlationId: string }
  /** Its due time before it was held. */
  heldDueAt?: Date
  /** The claim that was released last. */
  releasedClaimId?: string
  /** A fault of the subscription that the last answer indicated; removed once it is applied. */
  verdict?: { kind: 'rejected_auth' | 'gone' | 'not_found'; attemptId: string; sentAt: Date }
  /** When an ended delivery is deleted. */
  deleteAt?: Date
}

export type DeliveryDocument = Omit<Delivery, 'deliveryId'> &
  QueueFields & {
    _id: string
    /** Removed once accepted, since it is never sent again. */
    body?: Binary | Uint8Array
  }

export interface NewDelivery extends Delivery {
  body?: Uint8Array
  heldDueAt?: Date
  deleteAt?: Date
  claim?: DeliveryClaim
  traceparent?: string
}

export interface DeliveryQuery {
  workspaceId: string
  subscriptionId?: string
  leadId?: string
  statuses?: DeliveryStatus[]
  before?: { createdAt: Date; id: string }
}

export interface DeliveryStore {
  /** Returns false for each duplicate operation. */
  insertEach(deliveries: NewDelivery[]): Promise<PromiseSettledResult<boolean>[]>
  find(deliveryId: string): Promise<Delivery | undefined>
  findByAttempt(attemptId: string): Promise<Delivery | undefined>
  findByOperation(key: string): Promise<Delivery | undefined>
  /** Newest first. */
  list(query: DeliveryQuery, limit: number): Promise<Delivery[]>
  ofLead(leadId: string, limit: number): Promise<Delivery[]>
  /**
   * Adds a manual attempt to a delivery that waits or has ended, due at once. Returns undefined if
   * the delivery is in another state, has `maxAttempts` attempts, or the operation is a duplicate.
   */
  retry(deliveryId: string, retry: ManualRetry): Promise<Delivery | undefined>
  /** Manual requests for attempts, newest first. */
  requests(subscriptionId: string, limit: number): Promise<SubscriptionAuditEntry[]>
}

export interface ManualRetry {
  attempt: DeliveryAttempt
  operation: DeliveryOperation
  maxAttempts: number
}

const withoutBody = { projection: { body: 0 } } as const

export function createDeliveryStore({ deliveries }: { deliveries: Collection<DeliveryDocument> }): DeliveryStore {
  async function findOne(filter: Filter<DeliveryDocument>) {
    const found = await deliveries.findOne(filter, withoutBody)
    return found ? toDelivery(found) : undefined
  }

  async function findMany(filter: Filter<DeliveryDocument>, limit: number) {
    const found = deliveries.find(filter, withoutBody).sort({ createdAt: -1, _id: -1 }).limit(limit)
    return (await found.toArray()).map(toDelivery)
  }

  return {
    insertEach: (missing) => insertEach(deliveries, missing.map(toDocument)),

    find: (deliveryId) => findOne({ _id: deliveryId }),
    findByAttempt: (attemptId) => findOne({ 'attempts.attemptId': attemptId }),
    findByOperation: (key) => findOne({ 'operations.key': key }),

    list({ workspaceId, subscriptionId, leadId, statuses, before }, limit) {
      return findMany(
        {
          workspaceId,
          ...(subscriptionId === undefined ? {} : { subscriptionId }),
          ...(leadId === undefined ? {} : { leadId }),
          ...(statuses && { status: { $in: statuses } }),
          ...(before && {
            $or: [{ createdAt: { $lt: before.createdAt } }, { createdAt: before.createdAt, _id: { $lt: before.id } }],
          }),
        },
        limit,
      )
    },

    ofLead: (leadId, limit) => findMany({ leadId }, limit),

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
          {
            $set: { status: 'pending', dueAt: createdAt, requestedAt: createdAt, updatedAt: createdAt },
            $push: { attempts: attempt, operations: operation },
            $unset: { next: '', heldDueAt: '', deleteAt: '' },
          },
          { returnDocument: 'after', ...withoutBody },
        )
        .catch((error: unknown) => {
          // The same key created an attempt of another delivery meanwhile.
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

function toRequest(attempt: DeliveryAttempt, index: number): SubscriptionAuditEntry | undefined {
  const { requestedBy, attemptId, createdAt } = attempt
  if (requestedBy === undefined) return undefined
  return { at: createdAt, actor: requestedBy, action: index === 0 ? 'attempt_created' : 'attempt_retried', attemptId }
}

function toDocument({ deliveryId, ...rest }: NewDelivery): DeliveryDocument {
  return { _id: deliveryId, ...rest, destination: rest.subscriptionId }
}

export function toDelivery(document: DeliveryDocument): Delivery {
  const { _id, workspaceId, leadId, subscriptionId, status, attempts, operations, createdAt, updatedAt } = document
  const { requestedAt, dueAt } = document
  return {
    deliveryId: _id,
    workspaceId,
    leadId,
    subscriptionId,
    status,
    attempts,
    operations,
    createdAt,
    updatedAt,
    requestedAt,
    dueAt,
  }
}
