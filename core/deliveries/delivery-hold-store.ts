import type { Collection } from 'mongodb'
import { anyDestination } from './delivery-queue.ts'
import type { DeliveryDocument, QueueFields } from './delivery-store.ts'

export type PendingVerdict = NonNullable<QueueFields['verdict']> & { deliveryId: string; subscriptionId: string }

/** What happens to deliveries because of their subscription's state, and the other way round. */
export interface DeliveryHoldStore {
  /** Holds what is not under a live claim. */
  hold(subscriptionId: string, now: Date): Promise<void>
  /** Lets what is held go on, each at a moment of its own within `spreadMs`, and not before it was due. */
  release(subscriptionId: string, now: Date, spreadMs: number): Promise<void>
  /** How many each of them holds. */
  heldCounts(subscriptionIds: string[]): Promise<Map<string, number>>
  /** Subscriptions with held deliveries. */
  holding(): Promise<string[]>
  /** Subscriptions with deliveries that wait for a time or a worker. */
  waiting(): Promise<string[]>
  /** Answers that concern the subscription and have not been acted on. */
  verdicts(limit: number): Promise<PendingVerdict[]>
  verdictDone(verdict: Pick<PendingVerdict, 'deliveryId' | 'attemptId'>): Promise<void>
}

/** Asked for like this, the index alone gives the answer. */
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

    async verdicts(limit) {
      const found = await deliveries
        .find({ verdict: { $exists: true } }, { projection: { subscriptionId: 1, verdict: 1 } })
        .limit(limit)
        .toArray()
      return found.flatMap(({ _id, subscriptionId, verdict }) =>
        verdict ? [{ ...verdict, deliveryId: _id, subscriptionId }] : [],
      )
    },

    async verdictDone({ deliveryId, attemptId }) {
      await deliveries.updateOne({ _id: deliveryId, 'verdict.attemptId': attemptId }, { $unset: { verdict: '' } })
    },
  }
}
