import type { Filter, UpdateFilter } from 'mongodb'
import { createFollower } from '../concurrency/follower.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { announceMarked } from '../leads/leads.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'
import type { Ended, PendingFault } from './model.ts'
import { pauseDeliveries } from './pauses.ts'
import {
  type DisabledReason,
  defaultDisableAfterNotFound,
  type LeadSubscriptionDocument,
} from './subscription-model.ts'
import { disableSubscription, noFailures, noticed } from './subscriptions.ts'

/** A subscription that fails for this time is disabled (contract, section 5). */
export const failingMaxMs = 5 * 86_400_000
/** Pause in milliseconds before faults that could not be handled are tried again. */
const retryMs = 5_000

/**
 * Handles results that were recorded at `at`. Stores the time of the first failure, and removes it after a
 * success. Disables a subscription whose attempts have all failed for five days. Resets the count of
 * consecutive 404 answers after another answer. Can be repeated.
 */
export async function observeHealth(core: Core, subscriptionId: string, ended: Ended[], at: Date) {
  const live = liveSubscriptionsOf(core)
  const subscription = (await live.find(subscriptionId))?.subscription
  if (!subscription) return
  const { notFound, failingSince, deadLettersSince } = subscription
  async function apply(filter: Filter<LeadSubscriptionDocument>, update: UpdateFilter<LeadSubscriptionDocument>) {
    await core.db.leadSubscriptions.updateOne({ _id: subscriptionId, ...filter }, update)
    await live.changed(subscriptionId)
  }
  if (notFound.length > 0 && ended.some(endsNotFound))
    await apply({ 'notFound.0': { $exists: true } }, { $set: { notFound: [] } })
  const before = new Date(at.getTime() - failingMaxMs)
  if (ended.some(({ outcome }) => outcome.status === 'accepted')) {
    if (failingSince ?? deadLettersSince) await apply({}, { $unset: noFailures })
  } else if (!failingSince) {
    await apply({ failingSince: { $exists: false } }, { $set: { failingSince: at } })
  } else if (failingSince <= before) {
    await disable(core, subscriptionId, 'failing', ended.at(-1)!.attemptId, { failingBefore: before })
    await live.changed(subscriptionId)
  }
}

/**
 * A 410, for example, does not end a series of 404 answers: it may disable the subscription, and enabling
 * resets the count.
 */
const endsNotFound = ({ fault }: Ended) => !fault || fault.kind === 'dead_lettered'

export const faultsOf = perCore((core) => async (faults: PendingFault[]) => {
  for (const fault of faults) await applyOne(core, fault)
})

/** Handles the faults that these results have stored in their deliveries. A job repeats what fails here. */
export async function handleFaults(core: Core, subscriptionId: string, ended: Ended[]) {
  const pending = ended.flatMap(({ fault, deliveryId }) => (fault ? [{ ...fault, deliveryId, subscriptionId }] : []))
  await faultsOf(core)(pending).catch((error) => {
    logFailure(core.logger, 'disabling a subscription after a rejected request failed; will retry')(error)
    core.bus.emit('due', 'disable subscriptions', retryMs)
  })
}

/** Handles the faults that are still stored in deliveries, for example after a crash. */
export const pendingFaultsOf = perCore((core) =>
  createFollower({
    batch: 100,
    read: async (limit) => {
      const options = { projection: { subscriptionId: 1, verdict: 1 }, limit }
      const found = await core.db.deliveries.find({ verdict: { $exists: true } }, options).toArray()
      return found.map(({ _id, subscriptionId, verdict }) => ({ ...verdict!, deliveryId: _id, subscriptionId }))
    },
    handle: faultsOf(core),
    since: ({ sentAt }) => sentAt,
    now: core.now,
  }),
)

/** Can be repeated, because a fault from before the last change of the subscription is ignored. */
async function applyOne(core: Core, { subscriptionId, deliveryId, attemptId, kind, sentAt }: PendingFault) {
  const isCounted = kind === 'not_found' && !(await countNotFound(core, subscriptionId, attemptId, sentAt))
  if (kind === 'dead_lettered') await beginDeadLetters(core, subscriptionId, deliveryId)
  else if (!isCounted) await disable(core, subscriptionId, kind === 'not_found' ? 'gone' : kind, attemptId, { sentAt })
  // Also needed if it was already disabled: the process that disabled it may have crashed before this line.
  await liveSubscriptionsOf(core).changed(subscriptionId)
  await core.db.deliveries.updateOne({ _id: deliveryId, 'verdict.attemptId': attemptId }, { $unset: { verdict: '' } })
}

async function disable(
  core: Core,
  subscriptionId: string,
  reason: DisabledReason,
  attemptId: string,
  cause: { sentAt: Date } | { failingBefore: Date },
) {
  const entry = { at: dateOf(core), actor: 'service', attemptId }
  if (await disableSubscription(core, subscriptionId, reason, entry, cause)) await pauseDeliveries(core, subscriptionId)
}

/** Counts a 404 answer, once per attempt. Returns whether the consecutive ones disable the subscription. */
async function countNotFound({ db }: Core, subscriptionId: string, attemptId: string, sentAt: Date) {
  const found = await db.leadSubscriptions.findOneAndUpdate(
    { _id: subscriptionId, status: 'enabled', judgedSince: { $lte: sentAt }, disableAfterNotFound: { $ne: 0 } },
    { $addToSet: { notFound: attemptId } },
    { returnDocument: 'after', projection: { notFound: 1, disableAfterNotFound: 1 } },
  )
  return found !== null && found.notFound.length >= (found.disableAfterNotFound ?? defaultDisableAfterNotFound)
}

async function beginDeadLetters(core: Core, subscriptionId: string, deliveryId: string) {
  const at = dateOf(core)
  await core.db.leadSubscriptions
    .updateOne(
      { _id: subscriptionId, deadLettersSince: { $exists: false } },
      { $set: { deadLettersSince: at }, $push: noticed(at, { kind: 'subscription.failing', deliveryId }) },
    )
    .finally(() => announceMarked(core, 'subscriptions'))
}
