import type { Binary, Collection } from 'mongodb'
import { type LeadSubscriptionDocument, toSubscription } from '../destinations/lead-subscription-store.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import { anyDestination, type DeliveryDocument, toDelivery } from './delivery-store.ts'
import type { Delivery, DeliveryAttempt, DeliveryClaim, Settlement } from './model.ts'
import { isMissing } from './queue-again-store.ts'
import { settlementWrites } from './settlement-store.ts'

/** Due deliveries of one destination that a worker could claim. */
export interface Candidates {
  subscription: LeadSubscription
  /** Ids of the deliveries, earliest due first. */
  deliveryIds: string[]
  /** State of the subscription's rate limit. Absent before the first request. */
  rateFreeAt?: number
}

interface Claim extends DeliveryClaim {
  leaseUntil: Date
}

/** A claimed delivery, with the fields that are needed to send it. */
export interface TakenDelivery
  extends Pick<
    Delivery,
    'deliveryId' | 'subscriptionId' | 'leadId' | 'workspaceId' | 'conversationId' | 'messageSequence'
  > {
  /** All attempts. The last one is the attempt to send. */
  attempts: Pick<DeliveryAttempt, 'attemptId' | 'correlationId'>[]
  body: Uint8Array
  /** True if the previous claim of the delivery expired without a result. */
  tookOver: boolean
  traceparent?: string
}

/** A delivery with its claim. Results are checked against that claim. */
export interface QueuedDelivery extends Delivery {
  claim?: DeliveryClaim
  releasedClaimId?: string
}

export interface DeliveryQueue {
  /**
   * Returns the `limit` queue entries with the earliest due times, over all destinations. Reads no
   * documents. Reads `limit` index keys, and the keys of skipped destinations.
   */
  upcoming(limit: number, skipped?: string[]): Promise<{ destination: string; dueAt: Date }[]>
  /** Returns the destinations with due deliveries. Reads one or two index keys per destination. */
  dueDestinations(now: Date): Promise<string[]>
  /** Returns up to `perDestination` due deliveries per destination. */
  candidates(destinations: string[], now: Date, perDestination: number): Promise<Candidates[]>
  /**
   * Claims the given deliveries, except those that another worker claimed first. Returns them in the
   * order of the ids. If a retry of a delivery was scheduled, also adds its attempt.
   */
  take(deliveryIds: string[], claim: Claim): Promise<TakenDelivery[]>
  /**
   * Renews the leases of deliveries that still have the given claim, if the claim began at
   * `takenSince` or later. Returns the claim ids of the renewed leases, keyed by delivery id.
   */
  renew(
    claims: { deliveryId: string; claimId: string }[],
    until: { leaseUntil: Date; takenSince: Date },
  ): Promise<Map<string, string>>
  find(deliveryIds: string[]): Promise<QueuedDelivery[]>
  /**
   * Writes each settlement (an outcome or a return to the queue) if the delivery still has its
   * claim. Returns the number of deliveries changed.
   */
  settle(settlements: Settlement[]): Promise<number>
  /**
   * Stores the state of a rate limit. Returns false if the stored state is no longer `before`,
   * because another claim changed it first.
   */
  reserve(subscriptionId: string, before: number | undefined, freeAt: number): Promise<boolean>
  /**
   * Returns the given deliveries to the queue, except those that no longer have this claim. They are
   * due at `dueAt`, by default at once.
   */
  releaseClaim(deliveryIds: string[], claimId: string, at: Date, dueAt?: Date): Promise<void>
}

/** Every query sets a batch size. Otherwise the driver needs a second call to finish the cursor. */
export function createDeliveryQueue({
  deliveries,
  leadSubscriptions,
}: {
  deliveries: Collection<DeliveryDocument>
  leadSubscriptions: Collection<LeadSubscriptionDocument>
}): DeliveryQueue {
  return {
    async upcoming(limit, skipped = []) {
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

    dueDestinations: (now) => deliveries.distinct('destination', { ...anyDestination, dueAt: { $lte: now } }),

    async candidates(destinations, now, perDestination) {
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

    async take(deliveryIds, { leaseUntil, ...claim }) {
      const { claimId, at } = claim
      const nextAttempt = {
        attemptId: '$next.attemptId',
        correlationId: '$next.correlationId',
        manual: false,
        createdAt: at,
        updatedAt: at,
      }
      const { modifiedCount } = await deliveries.updateMany({ _id: { $in: deliveryIds }, dueAt: { $lte: at } }, [
        {
          $set: {
            attempts: {
              $cond: [isMissing('$next'), '$attempts', { $concatArrays: ['$attempts', [nextAttempt]] }],
            },
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
          { projection: sentFields, batchSize: deliveryIds.length + 1 },
        )
        .toArray()
      const byId = new Map(taken.map((delivery) => [delivery._id, toTaken(delivery)]))
      return deliveryIds.flatMap((id) => byId.get(id) ?? [])
    },

    async renew(claims, { leaseUntil, takenSince }) {
      const ids = claims.map(({ deliveryId }) => deliveryId)
      // The filter does not check which claim id belongs to which delivery id, so a wrong pair may
      // renew a lease. This is harmless: the result has the real claim id of each delivery, and the
      // caller compares them.
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

    async find(deliveryIds) {
      const found = await deliveries
        .find({ _id: { $in: deliveryIds } }, { projection: { body: 0 }, batchSize: deliveryIds.length + 1 })
        .toArray()
      return found.map((document) => ({
        ...toDelivery(document),
        claim: document.claim,
        releasedClaimId: document.releasedClaimId,
      }))
    },

    async settle(settlements) {
      if (settlements.length === 0) return 0
      const { modifiedCount } = await deliveries.bulkWrite(settlementWrites(settlements), { ordered: false })
      return modifiedCount
    },

    async reserve(subscriptionId, before, rateFreeAt) {
      const unchanged = before === undefined ? { rateFreeAt: { $exists: false } } : { rateFreeAt: before }
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, ...unchanged },
        { $set: { rateFreeAt } },
      )
      return modifiedCount === 1
    },

    async releaseClaim(deliveryIds, claimId, at, dueAt = at) {
      await deliveries.updateMany(
        { _id: { $in: deliveryIds }, status: 'sending', 'claim.claimId': claimId },
        { $set: { status: 'pending', dueAt, updatedAt: at }, $unset: { claim: '' } },
      )
    },
  }
}

const toTaken = ({
  _id,
  subscriptionId,
  leadId,
  conversationId,
  messageSequence,
  workspaceId,
  attempts,
  body,
  claim,
  traceparent,
}: DeliveryDocument): TakenDelivery => ({
  deliveryId: _id,
  subscriptionId,
  leadId,
  conversationId,
  messageSequence,
  workspaceId,
  attempts,
  body: bytesOf(body),
  tookOver: claim?.tookOver ?? false,
  traceparent,
})

const sentFields = {
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

export function bytesOf(body: Binary | Uint8Array | undefined): Uint8Array {
  if (body === undefined) return new Uint8Array()
  return body instanceof Uint8Array ? body : body.value()
}
