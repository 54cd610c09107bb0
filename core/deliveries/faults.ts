import { randomUUID } from 'node:crypto'
import { createFollower } from '../concurrency/follower.ts'
import { type Core, perCore } from '../core.ts'
import { announceMarked } from '../leads/leads.ts'
import { holdDeliveries } from './holds.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'
import type { PendingFault, Settlement } from './model.ts'
import { type DisabledReason, defaultDisableAfterNotFound, type LeadSubscription } from './subscription-model.ts'
import { disableSubscription, noFailures, noticesMax } from './subscriptions.ts'

/** A settlement (an outcome, or a return to the queue) and the subscription of its delivery. */
export interface ResultSettlement {
  subscriptionId: string
  settlement: Settlement
}

type Ended = Extract<Settlement, { kind: 'outcome' }>

/** Time in milliseconds after which a failing subscription is disabled (contract, section 5). */
export const failingMaxMs = 5 * 86_400_000
/** Time in milliseconds after which faults that could not be handled are tried again. */
const retryMs = 5_000
const batch = 100

/**
 * Handles results that were recorded at the time `at`. Stores the time of the first failure, and
 * removes it after a success. Disables a subscription if every attempt has failed for five days.
 * Resets the count of consecutive 404 answers after another answer. Repeating the call is safe.
 */
export async function observeHealth(core: Core, recorded: ResultSettlement[], at: Date) {
  const live = liveSubscriptionsOf(core)
  const { leadSubscriptions } = core.db
  const bySubscription = new Map<string, Ended[]>()
  for (const { subscriptionId, settlement } of recorded) {
    if (settlement.kind !== 'outcome') continue
    bySubscription.set(subscriptionId, [...(bySubscription.get(subscriptionId) ?? []), settlement])
  }
  const known = await Promise.all([...bySubscription.keys()].map((id) => live.find(id)))
  const found = known.flatMap((each) => (each ? [each.subscription] : []))
  const endedOf = ({ subscriptionId }: LeadSubscription) => bySubscription.get(subscriptionId)!
  const isAccepted = (subscription: LeadSubscription) =>
    endedOf(subscription).some(({ outcome }) => outcome.status === 'accepted')

  async function apply(isIncluded: (each: LeadSubscription) => boolean, filter: object, update: object) {
    const ids = found.filter(isIncluded).map(({ subscriptionId }) => subscriptionId)
    if (ids.length === 0) return
    await leadSubscriptions.updateMany({ _id: { $in: ids }, ...filter }, update)
    await live.changed(...ids)
  }
  const hasNotFound = (each: LeadSubscription) => each.notFound.length > 0 && endedOf(each).some(endsNotFound)
  await apply(hasNotFound, { 'notFound.0': { $exists: true } }, { $set: { notFound: [] } })
  const hasFailed = (each: LeadSubscription) => (each.failingSince ?? each.deadLettersSince) !== undefined
  await apply((each) => isAccepted(each) && hasFailed(each), {}, { $unset: noFailures })
  const beginsToFail = (each: LeadSubscription) => !isAccepted(each) && each.failingSince === undefined
  await apply(beginsToFail, { failingSince: { $exists: false } }, { $set: { failingSince: at } })
  const before = new Date(at.getTime() - failingMaxMs)
  for (const each of found) {
    if (isAccepted(each) || !each.failingSince || each.failingSince > before) continue
    await disable(core, each.subscriptionId, 'failing', endedOf(each).at(-1)!.attemptId, { failingBefore: before })
    await live.changed(each.subscriptionId)
  }
}

/**
 * True if the result ends a series of consecutive 404 answers. Another answer that may disable the
 * subscription, such as 410, returns false, because enabling the subscription later resets the
 * count.
 */
const endsNotFound = ({ fault }: Ended) => !fault || fault.kind === 'dead_lettered'

/** Handles faults of subscriptions and dead letters. Disables a subscription if the fault requires it. */
export const faultsOf = perCore((core) => async (faults: PendingFault[]) => {
  for (const fault of faults) await applyOne(core, fault)
})

/**
 * Handles the faults that these results have stored. A fault stays in the document of its delivery until it
 * has been handled, so a job repeats what failed here.
 */
export async function handleFaults(core: Core, recorded: ResultSettlement[]) {
  const pending = recorded.flatMap(({ subscriptionId, settlement }): PendingFault[] => {
    if (settlement.kind === 'release' || !settlement.fault) return []
    return [{ ...settlement.fault, deliveryId: settlement.deliveryId, subscriptionId }]
  })
  await faultsOf(core)(pending).catch(({ name: reason }: Error) => {
    core.logger.warn({ reason }, 'disabling a subscription after a rejected request failed; will retry')
    core.bus.emit('due', 'disable subscriptions', retryMs)
  })
}

/** Handles the faults that are still in documents of deliveries, for example because a process crashed. */
export const pendingFaultsOf = perCore((core) =>
  createFollower({
    batch,
    read: async (limit) => {
      const found = core.db.deliveries.find(
        { verdict: { $exists: true } },
        { projection: { subscriptionId: 1, verdict: 1 } },
      )
      return (await found.limit(limit).toArray()).map(({ _id, subscriptionId, verdict }) => ({
        ...verdict!,
        deliveryId: _id,
        subscriptionId,
      }))
    },
    handle: faultsOf(core),
    since: ({ sentAt }) => sentAt,
    now: core.now,
  }),
)

/**
 * Handles one fault. Handling it again is safe, because a fault from before the last change of
 * the subscription is ignored.
 */
async function applyOne(core: Core, { subscriptionId, deliveryId, attemptId, kind, sentAt }: PendingFault) {
  const isCounted = kind === 'not_found' && !(await countNotFound(core, subscriptionId, attemptId, sentAt))
  if (kind === 'dead_lettered') await beginDeadLetters(core, subscriptionId, deliveryId)
  else if (!isCounted) await disable(core, subscriptionId, kind === 'not_found' ? 'gone' : kind, attemptId, { sentAt })
  // Notifies the other cores even if the subscription was already disabled. The process that
  // disabled it may have crashed before it notified them.
  await liveSubscriptionsOf(core).changed(subscriptionId)
  await core.db.deliveries.updateOne({ _id: deliveryId, 'verdict.attemptId': attemptId }, { $unset: { verdict: '' } })
}

/** Disables a subscription because of this attempt, and holds its deliveries. */
async function disable(
  core: Core,
  subscriptionId: string,
  reason: DisabledReason,
  attemptId: string,
  cause: { sentAt: Date } | { failingBefore: Date },
) {
  const entry = { at: new Date(core.now()), actor: 'service', attemptId }
  if (await disableSubscription(core, subscriptionId, reason, entry, cause)) await holdDeliveries(core, subscriptionId)
}

/**
 * Counts a 404 answer, once per attempt. Returns true if the consecutive 404 answers are now as
 * many as disable the subscription.
 */
async function countNotFound({ db }: Core, subscriptionId: string, attemptId: string, sentAt: Date) {
  const found = await db.leadSubscriptions.findOneAndUpdate(
    { _id: subscriptionId, status: 'enabled', judgedSince: { $lte: sentAt }, disableAfterNotFound: { $ne: 0 } },
    { $addToSet: { notFound: attemptId } },
    { returnDocument: 'after', projection: { notFound: 1, disableAfterNotFound: 1 } },
  )
  return found !== null && found.notFound.length >= (found.disableAfterNotFound ?? defaultDisableAfterNotFound)
}

/**
 * Stores the time of the first dead letter and a notice about it. Changes nothing if the time of
 * an earlier dead letter is stored.
 */
async function beginDeadLetters(core: Core, subscriptionId: string, deliveryId: string) {
  const at = new Date(core.now())
  const notice = { noticeId: randomUUID(), at, kind: 'subscription.failing' as const, deliveryId }
  await core.db.leadSubscriptions
    .updateOne(
      { _id: subscriptionId, deadLettersSince: { $exists: false } },
      { $set: { deadLettersSince: at }, $push: { notices: { $each: [notice], $slice: -noticesMax } } },
    )
    .finally(() => announceMarked(core))
}
