import type { Binary, Collection } from 'mongodb'
import { settlementWrites } from './delivery-settlements.ts'
import type { AttemptOutcome } from './delivery-states.ts'
import {
  type Delivery,
  type DeliveryAttempt,
  type DeliveryClaim,
  type DeliveryDocument,
  toDelivery,
} from './delivery-store.ts'
import { type LeadSubscription, type LeadSubscriptionDocument, toSubscription } from './lead-subscription-store.ts'

/** What there is to claim of one destination. */
export interface Candidates {
  subscription: LeadSubscription
  /** The longest due first. */
  deliveryIds: string[]
}

export interface Claim extends DeliveryClaim {
  leaseUntil: Date
}

/** A delivery as it is sent. */
export interface TakenDelivery extends Pick<Delivery, 'deliveryId' | 'subscriptionId'> {
  /** The latest one is to be sent. */
  attempts: Pick<DeliveryAttempt, 'attemptId' | 'correlationId'>[]
  body: Uint8Array
  /** Its last claim had ended without a result. */
  tookOver: boolean
  traceparent?: string
}

/** A delivery as the judge of results needs it. */
export interface QueuedDelivery extends Delivery {
  claim?: DeliveryClaim
  releasedClaimId?: string
}

/** What becomes of a claimed delivery; each is written only while the claim stands. */
export type Settlement = { deliveryId: string; claimId: string; at: Date } & (
  | {
      kind: 'outcome'
      attemptId: string
      /** Its place in the list, which is the last. */
      index: number
      outcome: AttemptOutcome
      verdict?: NonNullable<DeliveryDocument['verdict']>
      retry?: { attemptId: string; correlationId: string; dueAt: Date }
      deleteAt?: Date
    }
  | { kind: 'release' }
)

/** Where a question is about all destinations: without it, an index that begins with them would not be used. */
export const anyDestination = { destination: { $gt: '' } }

export interface DeliveryQueue {
  /** What is due first, over all destinations: reads that many index keys and no document. */
  upcoming(limit: number): Promise<{ destination: string; dueAt: Date }[]>
  /** The destinations that something is due for: reads one or two index keys of each that has something to do. */
  dueDestinations(now: Date): Promise<string[]>
  /** Up to `perDestination` due deliveries of each. */
  candidates(destinations: string[], now: Date, perDestination: number): Promise<Candidates[]>
  /** Those of them that nobody took first, now under the claim. An attempt that is due by itself begins here. */
  take(deliveryIds: string[], claim: Claim): Promise<TakenDelivery[]>
  /**
   * Lets the leases of claims begin anew that nobody else has taken over, and that were taken since then; by delivery, whose
   * claims those are.
   */
  renew(
    claims: { deliveryId: string; claimId: string }[],
    until: { leaseUntil: Date; takenSince: Date },
  ): Promise<Map<string, string>>
  find(deliveryIds: string[]): Promise<QueuedDelivery[]>
  /** How many of them were written. */
  settle(settlements: Settlement[]): Promise<number>
  /** Hands all of a claim back. */
  releaseClaim(deliveryIds: string[], claimId: string, at: Date): Promise<void>
}

/** Each question is one call: without a batch size, the driver would fetch the rest of an answer with another one. */
export function createDeliveryQueue({
  deliveries,
  leadSubscriptions,
}: {
  deliveries: Collection<DeliveryDocument>
  leadSubscriptions: Collection<LeadSubscriptionDocument>
}): DeliveryQueue {
  return {
    async upcoming(limit) {
      const found = await deliveries
        .find(
          { dueAt: { $gt: new Date(0) } },
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
      return found.map(({ due, ...subscription }) => ({
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
          { projection: whatIsSent, batchSize: deliveryIds.length + 1 },
        )
        .toArray()
      return taken.map(({ _id, subscriptionId, attempts, body, claim: { tookOver = false } = {}, traceparent }) => ({
        deliveryId: _id,
        subscriptionId,
        attempts,
        body: bytesOf(body),
        tookOver,
        ...(traceparent && { traceparent }),
      }))
    },

    async renew(claims, { leaseUntil, takenSince }) {
      const ids = claims.map(({ deliveryId }) => deliveryId)
      // A delivery under another of these claims is the caller's, too: renewing it does no harm, and the answer is exact.
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
        ...(document.claim && { claim: document.claim }),
        ...(document.releasedClaimId === undefined ? {} : { releasedClaimId: document.releasedClaimId }),
      }))
    },

    async settle(settlements) {
      if (settlements.length === 0) return 0
      const { modifiedCount } = await deliveries.bulkWrite(settlementWrites(settlements), { ordered: false })
      return modifiedCount
    },

    async releaseClaim(deliveryIds, claimId, at) {
      await deliveries.updateMany(
        { _id: { $in: deliveryIds }, status: 'sending', 'claim.claimId': claimId },
        { $set: { status: 'pending', dueAt: at, updatedAt: at }, $unset: { claim: '' } },
      )
    },
  }
}

const whatIsSent = {
  subscriptionId: 1,
  body: 1,
  'attempts.attemptId': 1,
  'attempts.correlationId': 1,
  'claim.tookOver': 1,
  traceparent: 1,
} as const

const isMissing = (field: string) => ({ $eq: [{ $type: field }, 'missing'] })

function bytesOf(body: Binary | Uint8Array | undefined): Uint8Array {
  if (body === undefined) return new Uint8Array()
  return body instanceof Uint8Array ? body : body.value()
}
