import type { Binary, Collection, Filter } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import { insertEach } from '../database/insert-each.ts'
import type { AttemptOutcome, DeliveryStatus } from './delivery-states.ts'
import type { SubscriptionAuditEntry } from './lead-subscription-store.ts'

/** One attempt; its number is its place in the list. The latest stands where its delivery stands. */
export interface DeliveryAttempt {
  attemptId: string
  correlationId: string
  /** Somebody asked for it. */
  manual: boolean
  /** Who asked; left out for what happens by itself. */
  requestedBy?: string
  createdAt: Date
  updatedAt: Date
  outcome?: AttemptOutcome
}

/** A request that made an attempt, once however often it is repeated. */
export interface DeliveryOperation {
  /** Workspace, route and idempotency key: unique over all deliveries. */
  key: string
  inputHash: string
  attemptId: string
}

/** One lead on its way to one subscription's destination, with everything that was tried. */
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
  /** When somebody last asked for an attempt of it. */
  requestedAt?: Date
  /**
   * When it is next of interest to a worker: now, at the next retry, at the end of the lease. Only while there is something
   * to do: the queue's indexes hold nothing else.
   */
  dueAt?: Date
}

/** Whose a delivery is while it is being sent. */
export interface DeliveryClaim {
  claimId: string
  workerId: string
  at: Date
  /** When the subscription was read that it goes by: its answer says nothing of what was set up after that. */
  knownAt: Date
  /** The one before it had ended without a result. */
  tookOver?: boolean
}

/** What the queue keeps in the same document. */
export interface QueueFields {
  /** The subscription again: see the indexes. */
  destination: string
  claim?: DeliveryClaim
  /** The trace in which it was made (W3C Trace Context), where there was one. */
  traceparent?: string
  /** The attempt that follows by itself. */
  next?: { attemptId: string; correlationId: string }
  /** When it was due before it was held. */
  heldDueAt?: Date
  /** The claim that was handed back last. */
  releasedClaimId?: string
  /** What the last answer says of the subscription, as long as that has not been acted on. */
  verdict?: { kind: 'rejected_auth' | 'gone' | 'not_found'; attemptId: string; sentAt: Date }
  /** Once it has ended: it goes then. */
  deleteAt?: Date
}

export type DeliveryDocument = Omit<Delivery, 'deliveryId'> &
  QueueFields & {
    _id: string
    /** Gone once it was accepted, since it is never sent again then. */
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
  /** Of each: false when its operation has been done. */
  insertEach(deliveries: NewDelivery[]): Promise<PromiseSettledResult<boolean>[]>
  find(deliveryId: string): Promise<Delivery | undefined>
  findByAttempt(attemptId: string): Promise<Delivery | undefined>
  findByOperation(key: string): Promise<Delivery | undefined>
  /** The newest first. */
  list(query: DeliveryQuery, limit: number): Promise<Delivery[]>
  ofLead(leadId: string, limit: number): Promise<Delivery[]>
  /** Another attempt, at once, of a delivery that waits or has ended; undefined when it does not, has had `maxAttempts`, or the operation has been done. */
  retry(deliveryId: string, retry: ManualRetry): Promise<Delivery | undefined>
  /** Who asked for attempts, the newest first. */
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
          // The key has made an attempt of another delivery just now.
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
    ...(requestedAt && { requestedAt }),
    ...(dueAt && { dueAt }),
  }
}
