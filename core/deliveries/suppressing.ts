import { createFollower } from '../concurrency/follower.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { announceMarked, findLeads } from '../leads/leads.ts'
import { findSuppressedLeads, hasSuppressions, type NewSuppressions, storeSuppressions } from '../leads/suppressions.ts'
import { findIds, idsOf } from '../mongodb/with-id.ts'
import type { Settlement } from './model.ts'
import { retainedUntil, suppressedOutcome } from './outcomes.ts'
import { deliveryQueueOf, type TakenDelivery, withNext } from './queue.ts'

const batch = 500

/**
 * Adds entries to the suppression list; present ones stay. Ends the waiting deliveries of these people
 * before it resolves. Errors: `NotFound`, `ValidationFailed`.
 */
export async function addSuppressions(core: Core, request: NewSuppressions) {
  const { ids, added } = await storeSuppressions(core, request)
  await sweepEntries(core, ids)
  return { added, existing: ids.length - added }
}

/** Ends the deliveries that a process left when it died. */
export const unsweptSuppressionsOf = perCore((core) =>
  createFollower({
    batch,
    read: (limit) => core.db.suppressions.find({ unswept: true }, { projection: { addedAt: 1 }, limit }).toArray(),
    handle: (entries) => sweepEntries(core, idsOf(entries)),
    since: ({ addedAt }) => addedAt,
    now: core.now,
  }),
)

async function sweepEntries(core: Core, suppressionIds: string[]) {
  await endDeliveries(core, suppressionIds)
  await core.db.suppressions.updateMany({ _id: { $in: suppressionIds } }, { $unset: { unswept: '' } })
}

/** Ends the waiting and held deliveries of the leads with these contact ids. Can be repeated. */
async function endDeliveries(core: Core, contacts: string[]) {
  const { leads, deliveries } = core.db
  for (let after = ''; ; ) {
    const theirs = { contacts: { $in: contacts }, _id: { $gt: after } }
    const leadIds = await findIds(leads, theirs, { sort: { _id: 1 }, limit: batch })
    if (leadIds.length === 0) return
    after = leadIds.at(-1)!
    const at = dateOf(core)
    const ended = { updatedAt: at, outcome: suppressedOutcome }
    const isLast = { $eq: ['$$attempt.attemptId', { $arrayElemAt: ['$attempts.attemptId', -1] }] }
    const endedAttempt = { $mergeObjects: ['$$attempt', { $literal: ended }] }
    const withLastEnded = {
      $map: { input: '$attempts', as: 'attempt', in: { $cond: [isLast, endedAttempt, '$$attempt'] } },
    }
    const { modifiedCount } = await deliveries
      .updateMany({ leadId: { $in: leadIds }, status: { $in: ['pending', 'retry_scheduled', 'held'] } }, [
        {
          $set: {
            status: 'failed',
            attempts: withNext(at, withLastEnded, suppressedOutcome),
            updatedAt: at,
            deleteAt: retainedUntil(core, at),
            unannounced: true,
          },
        },
        { $unset: ['next', 'dueAt', 'heldDueAt', 'claim', 'releasedClaimId'] },
      ])
      .finally(() => announceMarked(core, 'deliveries'))
    core.metrics.attempts.inc({ status: 'failed', response_class: 'suppressed' }, modifiedCount)
  }
}

/** Ends claimed deliveries of people who were suppressed after the capture. Returns the others. */
export async function withoutSuppressed(core: Core, taken: TakenDelivery[], claimId: string, at: Date) {
  const workspaceIds = taken.map(({ workspaceId }) => workspaceId)
  if (!(await hasSuppressions(core, workspaceIds))) return taken
  const found = await findLeads(core, [...new Set(taken.flatMap(({ leadId }) => leadId || []))])
  const suppressed = await findSuppressedLeads(core, found)
  if (suppressed.size === 0) return taken
  const isSuppressed = ({ leadId = '' }: TakenDelivery) => suppressed.has(leadId)
  const ended = taken.filter(isSuppressed)
  await deliveryQueueOf(core).settle(
    ended.map(({ deliveryId, attempts }): Settlement => {
      const index = attempts.length - 1
      const { attemptId } = attempts[index]!
      const outcome = { ...suppressedOutcome, claimId }
      const deleteAt = retainedUntil(core, at)
      return { kind: 'outcome', deliveryId, claimId, at, attemptId, index, outcome, deleteAt }
    }),
  )
  core.metrics.attempts.inc({ status: 'failed', response_class: 'suppressed' }, ended.length)
  return taken.filter((each) => !isSuppressed(each))
}
