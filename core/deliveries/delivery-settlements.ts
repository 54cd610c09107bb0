import type { AnyBulkWriteOperation, Document, Filter } from 'mongodb'
import type { Settlement } from './delivery-queue.ts'
import type { DeliveryDocument } from './delivery-store.ts'

type Ended = Extract<Settlement, { kind: 'outcome' }>

/**
 * The writes that settle deliveries, each under its own claim. Those of one claim that came to the same end, which is nearly all
 * of them on a good day, are one write: a statement costs the engine three times what one more document in it does.
 */
export function settlementWrites(settlements: Settlement[]): AnyBulkWriteOperation<DeliveryDocument>[] {
  return [...Map.groupBy(settlements, sameEnd).values()].map((group) => {
    const [first] = group
    if (group.length > 1 && first?.kind === 'outcome') return together(group as [Ended, ...Ended[]])
    const [{ deliveryId, claimId }] = group as [Settlement]
    const filter = { _id: deliveryId, status: 'sending' as const, 'claim.claimId': claimId }
    const attempt = first?.kind === 'outcome' ? isLatest(first.index, first.attemptId) : {}
    return { updateOne: { filter: { ...filter, ...attempt }, update: settlementUpdate(first as Settlement) } }
  })
}

/** That the attempt is the last of its delivery. */
const isLatest = (index: number, attemptId: string | { $in: string[] }): Filter<DeliveryDocument> => ({
  attempts: { $size: index + 1 },
  [`attempts.${index}.attemptId`]: attemptId,
})

/** Equal for settlements that differ in nothing but the delivery and how long its attempt took. */
function sameEnd(settlement: Settlement): string {
  if (settlement.kind === 'release' || settlement.retry || settlement.verdict) return settlement.deliveryId
  const { claimId, index, at, deleteAt, outcome } = settlement
  if (outcome.durationMs === undefined) return settlement.deliveryId
  const { status, responseClass, responseStatus, failureReason, failurePhase } = outcome
  const end = [status, responseClass, responseStatus, failureReason, failurePhase]
  return [claimId, index, at.getTime(), deleteAt?.getTime(), ...end].join(' ')
}

function together(group: [Ended, ...Ended[]]): AnyBulkWriteOperation<DeliveryDocument> {
  const [{ claimId, index, at, deleteAt, outcome }] = group
  const ids = group.map(({ deliveryId }) => deliveryId)
  const attemptIds = group.map(({ attemptId }) => attemptId)
  const place = { $indexOfArray: [{ $literal: ids }, '$_id'] }
  const durationMs = { $arrayElemAt: [{ $literal: group.map((each) => each.outcome.durationMs) }, place] }
  const attempt = {
    $mergeObjects: [
      { $arrayElemAt: ['$attempts', index] },
      { updatedAt: at, outcome: { $mergeObjects: [{ $literal: outcome }, { durationMs }] } },
    ],
  }
  // Nothing is added to the list while an attempt is being sent: the one that ends is the last.
  const attempts = index === 0 ? [attempt] : { $concatArrays: [{ $slice: ['$attempts', index] }, [attempt]] }
  const gone = ['claim', 'dueAt', ...(outcome.status === 'accepted' ? ['body'] : [])]
  return {
    updateMany: {
      filter: {
        _id: { $in: ids },
        status: 'sending',
        'claim.claimId': claimId,
        ...isLatest(index, { $in: attemptIds }),
      },
      update: [
        { $set: { status: outcome.status, attempts, updatedAt: at, ...(deleteAt && { deleteAt }) } },
        { $unset: gone },
      ],
    },
  }
}

function settlementUpdate(settlement: Settlement): Document {
  const { at, claimId } = settlement
  if (settlement.kind === 'release') {
    return {
      $set: { status: 'pending', dueAt: at, releasedClaimId: claimId, updatedAt: at },
      $unset: { claim: '' },
    }
  }
  const { index, outcome, verdict, retry, deleteAt } = settlement
  return {
    $set: {
      status: outcome.status,
      [`attempts.${index}.outcome`]: outcome,
      [`attempts.${index}.updatedAt`]: at,
      updatedAt: at,
      ...(verdict && { verdict }),
      ...(deleteAt && { deleteAt }),
      ...(retry && {
        next: { attemptId: retry.attemptId, correlationId: retry.correlationId },
        dueAt: retry.dueAt,
      }),
    },
    $unset: {
      claim: '',
      ...(retry ? {} : { dueAt: '' }),
      // Never sent again: what it held of the lead is not kept twice.
      ...(outcome.status === 'accepted' ? { body: '' } : {}),
    },
  }
}
