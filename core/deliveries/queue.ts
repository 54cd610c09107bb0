import type { AnyBulkWriteOperation, Document, Filter } from 'mongodb'
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
  type Ended,
  type Settlement,
  toDelivery,
} from './model.ts'
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
      const found = deliveries.find(
        { dueAt: { $gt: new Date(0) }, destination: skipped.length > 0 ? { $nin: skipped } : undefined },
        { projection: { _id: 0, destination: 1, dueAt: 1 }, sort: { dueAt: 1 }, limit, batchSize: limit + 1 },
      )
      return (await found.toArray()).map(({ destination, dueAt = new Date(0) }) => ({ destination, dueAt }))
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
      const taken = deliveries.find(
        { _id: { $in: deliveryIds }, 'claim.claimId': claimId },
        { projection: takenFields, batchSize: deliveryIds.length + 1 },
      )
      const byId = new Map((await taken.toArray()).map((delivery) => [delivery._id, toTaken(delivery)]))
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
      const renewed = { ...held, dueAt: { $gte: leaseUntil } }
      const found = deliveries.find(renewed, { projection: { claim: 1 }, batchSize: ids.length + 1 })
      return new Map((await found.toArray()).map(({ _id, claim }) => [_id, claim?.claimId ?? '']))
    },

    async find(deliveryIds: string[]) {
      const options = { projection: { body: 0 }, batchSize: deliveryIds.length + 1 }
      return (await deliveries.find({ _id: { $in: deliveryIds } }, options).toArray()).map(toDelivery)
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

type Write = AnyBulkWriteOperation<DeliveryDocument>

/**
 * Returns the writes of settlements. Each applies only while the delivery has the claim. Equal outcomes of
 * one claim share a write, because one more write costs the database three times as much as one more
 * document in it. A receiver's answer may quote the message of the delivery. So an outcome with a text has
 * two writes, of which one applies: the second leaves out the text, after a withdrawal of the message.
 */
export function settlementWrites(settlements: Settlement[]): Write[] {
  return [...Map.groupBy(settlements, groupKey).values()].flatMap((group) => {
    const [first] = group as [Settlement]
    if (first.kind === 'release') return releaseOf(first)
    const ended = group as Ended[]
    if (first.outcome.responseText === undefined) return endOf(ended)
    const quiet = ended.map((each) => ({ ...each, outcome: { ...each.outcome, responseText: undefined } }))
    return [endOf(ended, { withdrawnAt: { $exists: false } }), endOf(quiet, { withdrawnAt: { $exists: true } })]
  })
}

/** Equal for settlements that differ only in the delivery and the duration. */
function groupKey(settlement: Settlement) {
  if (settlement.kind === 'release' || settlement.retry || settlement.fault) return settlement.deliveryId
  const { claimId, index, at, deleteAt, outcome } = settlement
  if (outcome.durationMs === undefined) return settlement.deliveryId
  const { status, responseClass, responseStatus, failureReason, failurePhase, responseText } = outcome
  const end = [status, responseClass, responseStatus, failureReason, failurePhase, responseText]
  return [claimId, index, at.getTime(), deleteAt?.getTime(), ...end].join(' ')
}

const releaseOf = ({ deliveryId, claimId, at }: Settlement): Write => ({
  updateOne: {
    filter: { _id: deliveryId, status: 'sending', 'claim.claimId': claimId },
    update: {
      $set: { status: 'pending', dueAt: at, releasedClaimId: claimId, updatedAt: at },
      $unset: { claim: '' },
    },
  },
})

function endOf(group: Ended[], state: Filter<DeliveryDocument> = {}): Write {
  const { claimId, index, at, deleteAt, outcome, fault, retry } = group[0]!
  const ids = group.map(({ deliveryId }) => deliveryId)
  // Only the last attempt can end: none is added while one is being sent.
  const filter = {
    _id: { $in: ids },
    status: 'sending' as const,
    'claim.claimId': claimId,
    attempts: { $size: index + 1 },
    [`attempts.${index}.attemptId`]: { $in: group.map(({ attemptId }) => attemptId) },
    ...state,
  }
  const changed = {
    status: outcome.status,
    updatedAt: at,
    verdict: fault,
    deleteAt,
    unannounced: retry ? undefined : (true as const),
    next: retry && { attemptId: retry.attemptId, correlationId: retry.correlationId },
    dueAt: retry?.dueAt,
  }
  // An accepted delivery is never sent again, so its copy of lead data is removed.
  const gone = ['claim', ...(retry ? [] : ['dueAt']), ...(outcome.status === 'accepted' ? ['body'] : [])]
  if (group.length === 1) {
    const ended = { [`attempts.${index}.outcome`]: outcome, [`attempts.${index}.updatedAt`]: at }
    const $unset = Object.fromEntries(gone.map((name) => [name, '' as const]))
    // The driver repeats writes of one document after a failover. An update without a pipeline is faster.
    return { updateOne: { filter, update: { $set: { ...changed, ...ended }, $unset } } }
  }
  const durations = group.map((each) => each.outcome.durationMs)
  const durationMs = { $arrayElemAt: [{ $literal: durations }, { $indexOfArray: [{ $literal: ids }, '$_id'] }] }
  const attempt = {
    $mergeObjects: [
      { $arrayElemAt: ['$attempts', index] },
      { updatedAt: at, outcome: { $mergeObjects: [{ $literal: outcome }, { durationMs }] } },
    ],
  }
  const attempts = index === 0 ? [attempt] : { $concatArrays: [{ $slice: ['$attempts', index] }, [attempt]] }
  return { updateMany: { filter, update: [{ $set: { ...changed, attempts } }, { $unset: gone }] } }
}

export const deliveryWorkHint = 'lead-deliveries'

/** Tells all cores that deliveries may be due. If the wake-up is lost, work starts some seconds later. */
export function announceDue(core: Core) {
  const failed = logFailure(core.logger, 'sending the wake-up for due deliveries failed; workers poll within seconds')
  wakeupsOf(core).hint(deliveryWorkHint).catch(failed)
}
