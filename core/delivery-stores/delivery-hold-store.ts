import type { Collection, Document, Filter } from 'mongodb'
import { anyDestination, type DeliveryDocument } from './delivery-store.ts'
import type { PendingFault } from './model.ts'
import { isMissing, queueAgain } from './queue-again-store.ts'

/**
 * Database operations for held deliveries. A delivery is held while its subscription is disabled.
 */
export interface DeliveryHoldStore {
  /**
   * Holds up to `limit` of the subscription's deliveries: those that wait for an attempt, and those
   * whose lease has expired. Returns the number of deliveries found.
   */
  hold(subscriptionId: string, now: Date, limit: number): Promise<number>
  /**
   * Queues up to `limit` held deliveries again. Each becomes due at a random time within `spreadMs`,
   * but not before its original due time. Returns the number of deliveries found.
   */
  release(subscriptionId: string, now: Date, spreadMs: number, limit: number): Promise<number>
  /** Counts the held deliveries of all subscriptions, up to `max`. */
  countAllHeld(max: number): Promise<number>
  /** Counts the held deliveries of the subscription, up to `max`. */
  countHeld(subscriptionId: string, max: number): Promise<number>
  /** Returns the number of held deliveries per subscription, counted up to `max`. */
  heldCounts(subscriptionIds: string[], max: number): Promise<Map<string, number>>
  /** Returns the ids of subscriptions with held deliveries. */
  holding(): Promise<string[]>
  /** Returns the ids of subscriptions with queued deliveries. */
  waiting(): Promise<string[]>
  /**
   * Corrects due times that were computed while a core's clock was ahead: the pause of the delivery
   * counts from now. Looks at scheduled retries, and at new deliveries of these subscriptions.
   */
  bringForward(subscriptionIds: string[], now: Date): Promise<void>
  /**
   * Returns subscription faults that are recorded with a delivery and have not been handled yet.
   */
  pendingFaults(limit: number): Promise<PendingFault[]>
  removeFault(fault: Pick<PendingFault, 'deliveryId' | 'attemptId'>): Promise<void>
}

/**
 * The latest possible date. As an upper bound on `dueAt`, it lets the index alone answer the query.
 */
const endOfTime = new Date(8.64e15)

/** Maximum difference of the cores' clocks in milliseconds. A later time is wrong. */
const clocksApartMs = 2_000

export function createDeliveryHoldStore({
  deliveries,
}: {
  deliveries: Collection<DeliveryDocument>
}): DeliveryHoldStore {
  /**
   * Updates at most `limit` matching deliveries. Without index hints, the database would read all
   * matching deliveries.
   */
  async function updateSome(filter: Filter<DeliveryDocument>, hint: string, limit: number, update: Document[]) {
    const found = await deliveries
      .find(filter, { projection: { _id: 1 }, batchSize: limit + 1, hint })
      .limit(limit)
      .toArray()
    const ids = found.map(({ _id }) => _id)
    if (ids.length > 0) await deliveries.updateMany({ $and: [{ _id: { $in: ids } }, filter] }, update, { hint: '_id_' })
    return ids.length
  }

  const countHeld = (subscriptionId: string, max: number) =>
    deliveries.countDocuments({ destination: subscriptionId, status: 'held' }, { limit: max })

  return {
    hold(subscriptionId, now, limit) {
      const waiting: Filter<DeliveryDocument> = {
        destination: subscriptionId,
        $or: [
          { status: { $in: ['pending', 'retry_scheduled'] }, dueAt: { $exists: true } },
          { status: 'sending', dueAt: { $lte: now } },
        ],
        dueAt: { $exists: true },
      }
      return updateSome(waiting, 'due_by_destination', limit, [
        { $set: { status: 'held', heldDueAt: '$dueAt', updatedAt: now } },
        { $unset: ['dueAt', 'claim'] },
      ])
    },

    release(subscriptionId, now, spreadMs, limit) {
      const moment = { $add: [now, { $multiply: [{ $rand: {} }, spreadMs] }] }
      const dueAt = { $max: ['$heldDueAt', moment] }
      const held = { destination: subscriptionId, status: 'held' as const }
      return updateSome(held, 'held_since', limit, queueAgain({ at: now, dueAt }))
    },

    countAllHeld: (max) => deliveries.countDocuments({ ...anyDestination, status: 'held' }, { limit: max }),

    countHeld,

    async heldCounts(subscriptionIds, max) {
      const counts = new Map<string, number>()
      for (const subscriptionId of await deliveries.distinct('destination', {
        destination: { $in: subscriptionIds },
        status: 'held',
      }))
        counts.set(subscriptionId, await countHeld(subscriptionId, max))
      return counts
    },

    holding: () => deliveries.distinct('destination', { ...anyDestination, status: 'held' }),
    waiting: () => deliveries.distinct('destination', { ...anyDestination, dueAt: { $lte: endOfTime } }),

    async bringForward(subscriptionIds, now) {
      const isAhead = { $gt: new Date(now.getTime() + clocksApartMs) }
      const pauseLeft = (due: string) => ({
        $cond: [isMissing(due), '$$REMOVE', { $add: [now, { $subtract: [due, '$updatedAt'] }] }],
      })
      const update = [{ $set: { dueAt: pauseLeft('$dueAt'), heldDueAt: pauseLeft('$heldDueAt'), updatedAt: now } }]
      await deliveries.updateMany({ next: { $exists: true }, updatedAt: isAhead }, update, { hint: 'scheduled' })
      if (subscriptionIds.length === 0) return
      await deliveries.updateMany(
        {
          subscriptionId: { $in: subscriptionIds },
          status: { $in: ['pending', 'sending'] },
          createdAt: isAhead,
          updatedAt: isAhead,
        },
        update,
        { hint: 'by_subscription_status' },
      )
    },

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
