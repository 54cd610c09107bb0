import type { AnyBulkWriteOperation, Document, Filter } from 'mongodb'
import type { DeliveryDocument, Ended, Settlement } from './model.ts'

/**
 * Returns the writes of settlements. Each applies only while the delivery has the claim. Equal outcomes of
 * one claim share a write, because one more write costs the database three times as much as one more
 * document in it. An answer of a receiver may quote the message of the delivery: its outcome has two
 * writes, of which one applies, with the text or, after a withdrawal, without.
 */
export function settlementWrites(settlements: Settlement[]): AnyBulkWriteOperation<DeliveryDocument>[] {
  return [...Map.groupBy(settlements, groupKey).values()].flatMap((group) => {
    const [first] = group as [Settlement, ...Settlement[]]
    if (first.kind === 'release' || first.outcome.responseText === undefined) return [writeOf(group)]
    const quiet = (group as Ended[]).map((each) => ({ ...each, outcome: { ...each.outcome, responseText: undefined } }))
    return [writeOf(group, { withdrawnAt: { $exists: false } }), writeOf(quiet, { withdrawnAt: { $exists: true } })]
  })
}

function writeOf(group: Settlement[], state: Filter<DeliveryDocument> = {}): AnyBulkWriteOperation<DeliveryDocument> {
  const [first] = group as [Settlement, ...Settlement[]]
  if (group.length > 1 && first.kind === 'outcome') return groupedWrite(group as [Ended, ...Ended[]], state)
  const { deliveryId, claimId } = first
  const filter = { _id: deliveryId, status: 'sending' as const, 'claim.claimId': claimId, ...state }
  const attempt = first.kind === 'outcome' ? isLatest(first.index, first.attemptId) : {}
  return { updateOne: { filter: { ...filter, ...attempt }, update: settlementUpdate(first) } }
}

/** Only the last attempt can end. */
const isLatest = (index: number, attemptId: string | { $in: string[] }): Filter<DeliveryDocument> => ({
  attempts: { $size: index + 1 },
  [`attempts.${index}.attemptId`]: attemptId,
})

/** Equal for settlements that differ only in the delivery and the duration. */
function groupKey(settlement: Settlement) {
  if (settlement.kind === 'release' || settlement.retry || settlement.fault) return settlement.deliveryId
  const { claimId, index, at, deleteAt, outcome } = settlement
  if (outcome.durationMs === undefined) return settlement.deliveryId
  const { status, responseClass, responseStatus, failureReason, failurePhase, responseText } = outcome
  const end = [status, responseClass, responseStatus, failureReason, failurePhase, responseText]
  return [claimId, index, at.getTime(), deleteAt?.getTime(), ...end].join(' ')
}

function groupedWrite(
  group: [Ended, ...Ended[]],
  state: Filter<DeliveryDocument>,
): AnyBulkWriteOperation<DeliveryDocument> {
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
  // The ended attempt is the last: none is added while one is being sent.
  const attempts = index === 0 ? [attempt] : { $concatArrays: [{ $slice: ['$attempts', index] }, [attempt]] }
  const gone = ['claim', 'dueAt', ...(outcome.status === 'accepted' ? ['body'] : [])]
  return {
    updateMany: {
      filter: {
        _id: { $in: ids },
        status: 'sending',
        'claim.claimId': claimId,
        ...isLatest(index, { $in: attemptIds }),
        ...state,
      },
      update: [
        { $set: { status: outcome.status, attempts, updatedAt: at, deleteAt, unannounced: true } },
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
  const { index, outcome, fault, retry, deleteAt } = settlement
  return {
    $set: {
      status: outcome.status,
      [`attempts.${index}.outcome`]: outcome,
      [`attempts.${index}.updatedAt`]: at,
      updatedAt: at,
      verdict: fault,
      deleteAt,
      unannounced: retry ? undefined : true,
      next: retry && { attemptId: retry.attemptId, correlationId: retry.correlationId },
      dueAt: retry?.dueAt,
    },
    $unset: {
      claim: '',
      dueAt: retry ? undefined : '',
      // Never sent again, so its copy of lead data is removed.
      body: outcome.status === 'accepted' ? '' : undefined,
    },
  }
}
