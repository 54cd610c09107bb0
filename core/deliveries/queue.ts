import type { Document } from 'mongodb'
import { type Core, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { announceMarked } from '../leads/leads.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import {
  type AttemptOutcome,
  anyDestination,
  bytesOf,
  type DeliveryAttempt,
  type DeliveryClaim,
  type DeliveryDocument,
  type DeliveryOperation,
  type Settlement,
  toDelivery,
} from './model.ts'
import { settlementWrites } from './settlements.ts'
import { type LeadSubscriptionDocument, toSubscription } from './subscription-model.ts'

export type Candidates = Awaited<ReturnType<DeliveryQueue['candidates']>>[number]

export type DeliveryQueue = ReturnType<typeof deliveryQueueOf>

/** Queries set a batch size; otherwise the driver needs a second call to finish the cursor. */
export const deliveryQueueOf = perCore((core) => {
  const { deliveries, leadSubscriptions } = core.db
  return {
    /**
     * Returns the earliest queue entries. Reads only their index keys, and those of skipped destinations.
     */
    async upcoming(limit: number, skipped: string[] = []) {
      const found = await deliveries
        .find(
          { dueAt: { $gt: new Date(0) }, destination: skipped.length > 0 ? { $nin: skipped } : undefined },
          { projection: { _id: 0, destination: 1, dueAt: 1 }, batchSize: limit + 1 },
        )
        .sort({ dueAt: 1 })
        .limit(limit)
        .toArray()
      return found.map(({ destination, dueAt = new Date(0) }) => ({ destination, dueAt }))
    },

    /** Returns destinations with due deliveries. Reads one or two index keys per destination. */
    dueDestinations: (now: Date) => deliveries.distinct('destination', { ...anyDestination, dueAt: { $lte: now } }),

    /** Returns the earliest due deliveries of each destination, and the state of its rate limit. */
    async candidates(destinations: string[], now: Date, perDestination: number) {
      const found = await leadSubscriptions
        .aggregate<LeadSubscriptionDocument & { due: { _id: string }[] }>(
          [
            { $match: { _id: { $in: destinations } } },
            { $project: { audit: 0 } },
            {
              $lookup: {
                from: deliveries.collectionName,
                localField: '_id',
                foreignField: 'destination',
                pipeline: [
                  { $match: { dueAt: { $lte: now } } },
                  { $sort: { dueAt: 1 } },
                  { $limit: perDestination },
                  { $project: { _id: 1 } },
                ],
                as: 'due',
              },
            },
          ],
          { batchSize: destinations.length + 1 },
        )
        .toArray()
      return found.map(({ due, rateFreeAt, ...subscription }) => ({
        rateFreeAt,
        subscription: toSubscription({ ...subscription, audit: [] }),
        deliveryIds: due.map(({ _id }) => _id),
      }))
    },

    /**
     * Claims the deliveries that no other worker has claimed first. Returns them in the order of the ids,
     * with the attempts of scheduled retries added.
     */
    async take(deliveryIds: string[], claim: DeliveryClaim, leaseUntil: Date): Promise<TakenDelivery[]> {
      const { claimId, at } = claim
      const { modifiedCount } = await deliveries.updateMany({ _id: { $in: deliveryIds }, dueAt: { $lte: at } }, [
        {
          $set: {
            attempts: withNext(at, '$attempts'),
            status: 'sending',
            claim: { $cond: [isMissing('$claim'), { $literal: claim }, { $literal: { ...claim, tookOver: true } }] },
            dueAt: leaseUntil,
            updatedAt: at,
          },
        },
        { $unset: ['next', 'releasedClaimId'] },
      ])
      if (modifiedCount === 0) return []
      const taken = await deliveries
        .find(
          { _id: { $in: deliveryIds }, 'claim.claimId': claimId },
          { projection: takenFields, batchSize: deliveryIds.length + 1 },
        )
        .toArray()
      const byId = new Map(taken.map((delivery) => [delivery._id, toTaken(delivery)]))
      return deliveryIds.flatMap((id) => byId.get(id) ?? [])
    },

    /** Renews leases of claims since `takenSince`. Returns their claim ids by delivery id. */
    async renew(
      claims: { deliveryId: string; claimId: string }[],
      { leaseUntil, takenSince }: { leaseUntil: Date; takenSince: Date },
    ): Promise<Map<string, string>> {
      const ids = claims.map(({ deliveryId }) => deliveryId)
      // A wrong pair of delivery and claim may renew a lease. The caller compares the real claim ids.
      const held = {
        _id: { $in: ids },
        status: 'sending' as const,
        'claim.claimId': { $in: [...new Set(claims.map(({ claimId }) => claimId))] },
        'claim.at': { $gte: takenSince },
      }
      const { matchedCount } = await deliveries.updateMany(held, { $max: { dueAt: leaseUntil } })
      if (matchedCount === 0) return new Map()
      const found = await deliveries
        .find({ ...held, dueAt: { $gte: leaseUntil } }, { projection: { claim: 1 }, batchSize: ids.length + 1 })
        .toArray()
      return new Map(found.map(({ _id, claim }) => [_id, claim?.claimId ?? '']))
    },

    async find(deliveryIds: string[]) {
      const found = await deliveries
        .find({ _id: { $in: deliveryIds } }, { projection: { body: 0 }, batchSize: deliveryIds.length + 1 })
        .toArray()
      return found.map(toDelivery)
    },

    /**
     * Writes each settlement if the delivery still has its claim. Returns the number of deliveries changed.
     */
    async settle(settlements: Settlement[]) {
      if (settlements.length === 0) return 0
      const writing = deliveries.bulkWrite(settlementWrites(settlements), { ordered: false })
      return (await writing.finally(() => announceMarked(core, 'deliveries'))).modifiedCount
    },

    /** Stores the state of a rate limit. Returns false if another claim has changed `before` first. */
    async reserve(subscriptionId: string, before: number | undefined, rateFreeAt: number) {
      const unchanged = before === undefined ? { rateFreeAt: { $exists: false } } : { rateFreeAt: before }
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, ...unchanged },
        { $set: { rateFreeAt } },
      )
      return modifiedCount === 1
    },

    /** Returns deliveries that still have this claim to the queue. */
    async releaseClaim(deliveryIds: string[], claimId: string, at: Date, dueAt = at) {
      await deliveries.updateMany(
        { _id: { $in: deliveryIds }, status: 'sending', 'claim.claimId': claimId },
        { $set: { status: 'pending', dueAt, updatedAt: at }, $unset: { claim: '' } },
      )
    },
  }
})

const toTaken = ({ _id: deliveryId, body, claim, ...sent }: DeliveryDocument) => ({
  ...sent,
  deliveryId,
  body: bytesOf(body),
  tookOver: claim?.tookOver ?? false,
})

export type TakenDelivery = ReturnType<typeof toTaken>

const takenFields = {
  subscriptionId: 1,
  leadId: 1,
  conversationId: 1,
  messageSequence: 1,
  workspaceId: 1,
  body: 1,
  'attempts.attemptId': 1,
  'attempts.correlationId': 1,
  'claim.tookOver': 1,
  traceparent: 1,
} as const

/**
 * Returns the update that queues a delivery again: with `attempt`, which replaces the scheduled one; else a
 * held delivery continues with the attempt that it waited for. `dueAt` is a time or an expression.
 */
export function queueAgain(again: {
  at: Date
  dueAt: Date | Document
  attempt?: DeliveryAttempt
  operation?: DeliveryOperation
  requestedAt?: Date
}): Document[] {
  const { at, dueAt, attempt, operation, requestedAt } = again
  return [
    {
      $set: {
        status: attempt ? 'pending' : { $cond: [isMissing('$next'), 'pending', 'retry_scheduled'] },
        dueAt,
        updatedAt: at,
        requestedAt,
        attempts: attempt && withLast('$attempts', attempt),
        operations: operation && withLast('$operations', operation),
      },
    },
    { $unset: attempt ? ['heldDueAt', 'next', 'deleteAt'] : ['heldDueAt'] },
  ]
}

export const isMissing = (field: string) => ({ $eq: [{ $type: field }, 'missing'] })

/** An expression of the attempts with the scheduled one; `otherwise` if none is scheduled. */
export function withNext(at: Date, otherwise: string | Document, outcome?: AttemptOutcome): Document {
  const ids = { attemptId: '$next.attemptId', correlationId: '$next.correlationId' }
  const attempt = { ...ids, manual: false, createdAt: at, updatedAt: at, outcome }
  return { $cond: [isMissing('$next'), otherwise, { $concatArrays: ['$attempts', [attempt]] }] }
}

const withLast = (list: string, last: object) => ({ $concatArrays: [list, [{ $literal: last }]] })

export const deliveryWorkHint = 'lead-deliveries'

/** Tells all cores that deliveries may be due. If the wake-up is lost, work starts some seconds later. */
export function announceDue(core: Core) {
  const failed = logFailure(core.logger, 'sending the wake-up for due deliveries failed; workers poll within seconds')
  wakeupsOf(core).hint(deliveryWorkHint).catch(failed)
}
