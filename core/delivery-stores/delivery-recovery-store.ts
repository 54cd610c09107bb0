import { randomUUID } from 'node:crypto'
import type { AnyBulkWriteOperation, Collection } from 'mongodb'
import { type LeadSubscriptionDocument, toSubscription } from '../destinations/lead-subscription-store.ts'
import { auditMax, type LeadSubscription, type SubscriptionAuditEntry } from '../destinations/model.ts'
import type { DeliveryRecovery, RecoverableStatus, RecoveryRange } from '../destinations/recovery-model.ts'
import { newId } from '../ids.ts'
import { createLeases, type Lease } from '../mongodb/leases.ts'
import { isRecorded, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import type { DeliveryDocument } from './delivery-store.ts'
import { queueAgain } from './queue-again-store.ts'

type Recoverable = Pick<DeliveryDocument, '_id' | 'createdAt' | 'attempts'>

export interface Recovering {
  lease: Lease
  subscription: LeadSubscription
  recovery: DeliveryRecovery
}

export interface DeliveryRecoveryStore {
  /** Counts deliveries in the range, up to `limit`. */
  count(subscriptionId: string, range: RecoveryRange, limit: number): Promise<number>
  /**
   * Stores a new recovery. Returns false if another one is running or the subscription is disabled.
   * Returns true if the operation is already recorded.
   */
  begin(
    subscriptionId: string,
    recovery: DeliveryRecovery,
    entry: SubscriptionAuditEntry,
    operation: string,
  ): Promise<boolean>
  /** Takes the lease of a recovery whose next step is due. */
  lease(now: Date, until: Date): Promise<Recovering | undefined>
  nextStepAt(): Promise<Date | undefined>
  /** Returns the next deliveries of a recovery, oldest first. */
  next(of: Recovering, status: RecoverableStatus, limit: number): Promise<Recoverable[]>
  /**
   * Schedules deliveries again. The first is due at `dueAt`, and each other one `everyMs` after the
   * one before it. A delivery is scheduled once per recovery, even if the call is repeated. Returns
   * the number of scheduled deliveries.
   */
  schedule(
    deliveries: Recoverable[],
    status: RecoverableStatus,
    options: { recoveryId: string; maxAttempts: number; at: Date; dueAt: Date; everyMs: number },
  ): Promise<number>
  /**
   * Stores the progress of a step. Without `after`, the next step searches from the oldest delivery
   * of the first remaining status. Throws `LeaseLost` if another core has taken the lease.
   */
  advance(
    of: Recovering,
    changes: Pick<DeliveryRecovery, 'remaining' | 'after' | 'nextDueAt' | 'nextStepAt'>,
    recovered: number,
  ): Promise<void>
  /** Stores the end of a recovery with the exact number of scheduled deliveries. */
  finish(of: Recovering, finishedAt: Date): Promise<void>
}

const index = 'by_subscription_status'
const ofEnabled = { status: 'enabled', deleted: { $exists: false } } as const

export function createDeliveryRecoveryStore({
  deliveries,
  leadSubscriptions,
}: {
  deliveries: Collection<DeliveryDocument>
  leadSubscriptions: Collection<LeadSubscriptionDocument>
}): DeliveryRecoveryStore {
  const inRange = (subscriptionId: string, { since, until, eventTypes }: RecoveryRange, status: RecoverableStatus) => ({
    subscriptionId,
    status,
    ...(eventTypes && { eventType: { $in: eventTypes } }),
    createdAt: { $gte: since, $lt: until },
    body: { $exists: true },
  })
  const leases = createLeases(leadSubscriptions, { until: 'recovery.nextStepAt', token: 'recovery.fencingToken' })

  return {
    async count(subscriptionId, range, limit) {
      let counted = 0
      for (const status of range.statuses) {
        if (counted >= limit) break
        const found = inRange(subscriptionId, range, status)
        counted += await deliveries.countDocuments(found, { hint: index, limit: limit - counted })
      }
      return counted
    },

    async begin(subscriptionId, recovery, entry, operation) {
      const { modifiedCount } = await leadSubscriptions.updateOne(
        {
          _id: subscriptionId,
          status: 'enabled',
          deleted: { $exists: false },
          'recovery.nextStepAt': { $exists: false },
          ...unlessRecorded(operation),
        },
        {
          $set: { recovery },
          $push: { audit: { $each: [entry], $position: 0, $slice: auditMax }, ...recording(operation) },
        },
      )
      return modifiedCount === 1 || (await isRecorded(leadSubscriptions, subscriptionId, operation))
    },

    nextStepAt: () => leases.nextAt(ofEnabled),

    async lease(now, until) {
      const found = await leases.take({ now, until }, ofEnabled)
      const { lease, document } = found ?? {}
      return (
        lease && document?.recovery && { lease, subscription: toSubscription(document), recovery: document.recovery }
      )
    },

    next({ subscription, recovery }, status, limit) {
      const { after } = recovery
      return deliveries
        .find(
          {
            ...inRange(subscription.subscriptionId, recovery, status),
            ...(after && {
              createdAt: { $gte: after.createdAt, $lt: recovery.until },
              $or: [{ createdAt: { $gt: after.createdAt } }, { _id: { $gt: after.id } }],
            }),
          },
          { projection: { createdAt: 1, attempts: 1 }, hint: index },
        )
        .sort({ createdAt: 1, _id: 1 })
        .limit(limit)
        .toArray()
    },

    async schedule(found, status, { recoveryId, maxAttempts, at, dueAt, everyMs }) {
      if (found.length === 0) return 0
      const writes = found.map(({ _id, attempts }, position): AnyBulkWriteOperation<DeliveryDocument> => {
        const key = operationKey(recoveryId, _id)
        const filter = { _id, status, body: { $exists: true }, 'operations.key': { $ne: key } }
        const again = { at, dueAt: new Date(dueAt.getTime() + position * everyMs) }
        if (status === 'held') {
          // A held delivery already has an attempt that waits, so no attempt is added.
          const operation = { key, inputHash: '', attemptId: attempts.at(-1)!.attemptId }
          return { updateOne: { filter, update: queueAgain({ ...again, operation }) } }
        }
        const attemptId = newId('att')
        const attempt = { attemptId, correlationId: randomUUID(), manual: true, createdAt: at, updatedAt: at }
        const operation = { key, inputHash: '', attemptId }
        return {
          updateOne: {
            filter: { ...filter, [`attempts.${maxAttempts - 1}`]: { $exists: false } },
            update: queueAgain({ ...again, attempt, operation }),
          },
        }
      })
      return (await deliveries.bulkWrite(writes, { ordered: false })).modifiedCount
    },

    async advance(of, changes, recovered) {
      const { after, ...rest } = changes
      const set = Object.fromEntries(Object.entries(rest).map(([name, value]) => [`recovery.${name}`, value]))
      await leases.write(of.lease, {
        $set: { ...set, 'recovery.after': after },
        ...(!after && { $unset: { 'recovery.after': '' } }),
        $inc: { 'recovery.recovered': recovered },
      })
    },

    async finish({ lease, recovery }, finishedAt) {
      const first = operationKey(recovery.recoveryId, '')
      const recovered = await deliveries.countDocuments({ 'operations.key': { $gte: first, $lt: `${first}~` } })
      await leases.write(lease, {
        $set: { 'recovery.remaining': [], 'recovery.recovered': recovered, 'recovery.finishedAt': finishedAt },
        $unset: { 'recovery.nextStepAt': '', 'recovery.after': '' },
      })
    },
  }
}

const operationKey = (recoveryId: string, deliveryId: string) => `${recoveryId} ${deliveryId}`
