import type { AnyBulkWriteOperation, Filter } from 'mongodb'
import type { DeliveryDocument, Ended, Settlement } from './model.ts'

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
