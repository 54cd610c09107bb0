import type { Collection } from 'mongodb'
import { anyDestination } from './delivery-queue.ts'
import type { DeliveryDocument, QueueFields } from './delivery-store.ts'

export type PendingFault = NonNullable<QueueFields['verdict']> & { deliveryId: string; subscriptionId: string }

/** Writes that keep deliveries and the state of their subscription consistent. */
export interface DeliveryHoldStore {
  /** Holds the subscription's deliveries, except those under a live claim. */
  hold(subscriptionId: string, now: Date): Promise<void>
  /**
   * Releases held deliveries at random times within `spreadMs`, but none before its original due
   * time.
   */
  release(subscriptionId: string, now: Date, spreadMs: number): Promise<void>
  /** Held deliveries per subscription. */
  heldCounts(subscriptionIds: string[]): Promise<Map<string, number>>
  /** Subscriptions with held deliveries. */
  holding(): Promise<string[]>
  /** Subscriptions with queued deliveries. */
  waiting(): Promise<string[]>
  /** Answers that may disable their subscription and have not been applied. */
  pendingFaults(limit: number): Promise<PendingFault[]>
  removeFault(fault: Pick<PendingFault, 'deliveryId' | 'attemptId'>): Promise<void>
}

/** An upper bound on `dueAt` lets the index alone answer the query. */
const endOfTime = new Date(8.64e15)

export function createDeliveryHoldStore({
  deliveries,
}: {
  deliveries: Collection<DeliveryDocument>
}): DeliveryHoldStore {
  return {
    async hold(subscriptionId, now) {
      await deliveries.updateMany(
        {
          destination: subscriptionId,
          $or: [
            { status: { $in: ['pending', 'retry_scheduled'] }, dueAt: { $exists: true } },
            { status: 'sending', dueAt: { $lte: now } },
          ],
          dueAt: { $exists: true },
        },
        [{ $set: { status: 'held', heldDueAt: '$dueAt', updatedAt: now } }, { $unset: ['dueAt', 'claim'] }],
      )
    },

    async release(subscriptionId, now, spreadMs) {
      const moment = { $add: [now, { $multiply: [{ $rand: {} }, spreadMs] }] }
      await deliveries.updateMany({ destination: subscriptionId, status: 'held' }, [
        {
          $set: {
            status: { $cond: [{ $eq: [{ $type: '$next' }, 'missing'] }, 'pending', 'retry_scheduled'] },
            dueAt: { $max: ['$heldDueAt', moment] },
            updatedAt: now,
          },
        },
        { $unset: 'heldDueAt' },
      ])
    },

    async heldCounts(subscriptionIds) {
      const counts = await deliveries
        .aggregate<{ _id: string; count: number }>([
          { $match: { status: 'held', destination: { $in: subscriptionIds } } },
          { $group: { _id: '$destination', count: { $sum: 1 } } },
        ])
        .toArray()
      return new Map(counts.map(({ _id, count }) => [_id, count]))
    },

    holding: () => deliveries.distinct('destination', { ...anyDestination, status: 'held' }),
    waiting: () => deliveries.distinct('destination', { ...anyDestination, dueAt: { $lte: endOfTime } }),

    async pendingFaults(limit) {
      const found = await deliveries
        .find({ verdict: { $exists: true } }, { projection: { subscriptionId: 1, verdict: 1 } })
        .limit(limit)
        .toArray()
      return found.flatMap(({ _id, subscriptionId, verdict }) =>
        verdict ? [{ ...verdict, deliveryId: _id, subscriptionId }] : [],
      )
    },

    async removeFault({ deliveryId, attemptId }) {
      await deliveries.updateOne({ _id: deliveryId, 'verdict.attemptId': attemptId }, { $unset: { verdict: '' } })
    },
  }
}
