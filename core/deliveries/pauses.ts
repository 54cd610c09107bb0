import type { Document, Filter } from 'mongodb'
import { createPace } from '../concurrency/pace.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { findIds } from '../mongodb/with-id.ts'
import { findSubscriptions } from './live-subscriptions.ts'
import { anyDestination, type DeliveryDocument } from './model.ts'
import { announceDue, isMissing, queueAgain } from './queue.ts'
import type { SubscriptionStatus } from './subscription-model.ts'

/**
 * After a subscription was enabled, its paused deliveries become due within a period that grows with them,
 * to protect the destination.
 */
const spreadPerDeliveryMs = 10
const spreadMaxMs = 30_000
const stepMax = 200
/** Lower than `stepMax`, because the call that changes the subscription waits for the first step. */
const firstStepMax = 60
/** Counts end here, because a count reads each delivery. */
const pausedCountMax = 10_000
/** Maximum difference of the cores' clocks in milliseconds. */
const clocksApartMs = 2_000
/** An upper bound on `dueAt` lets the index alone answer a query. */
const endOfTime = new Date(8.64e15)

/** Subscriptions whose deliveries are changed in the background. `again`: the status may have changed. */
const runningOf = perCore(() => new Map<string, { again: boolean }>())

/**
 * Pauses the waiting deliveries of a disabled subscription: the first ones at once, the others in steps in
 * the background. Claims skip those that are not paused yet.
 */
export async function pauseDeliveries(core: Core, subscriptionId: string) {
  if (!runningOf(core).has(subscriptionId)) await applyStatus(core, subscriptionId)
}

/**
 * Pauses the deliveries of a disabled subscription, or queues those of an enabled one again, in steps.
 */
export async function applyStatus(core: Core, subscriptionId: string) {
  if (!(await step(core, subscriptionId, firstStepMax))) void finishLater(core, subscriptionId)
}

/**
 * Changes up to `limit` deliveries by the status of the subscription. Returns true if all match it, also if
 * it changed meanwhile.
 */
async function step(core: Core, subscriptionId: string, limit: number) {
  for (let completed: SubscriptionStatus | undefined; ; ) {
    const [subscription] = await findSubscriptions(core, [subscriptionId])
    if (!subscription || subscription.status === completed) return true
    completed = subscription.status
    const changed = await (completed === 'disabled' ? pause : resume)(core, subscriptionId, limit)
    if (changed === limit) return false
  }
}

/** Changes the other deliveries in steps. Never rejects. */
async function finishLater(core: Core, subscriptionId: string) {
  const running = runningOf(core)
  const { signal } = core.closing
  const known = running.get(subscriptionId)
  if (known) known.again = true
  if (known || signal.aborted) return
  const state = { again: true }
  running.set(subscriptionId, state)
  const paced = createPace({ share: 1 / 5, maxPauseMs: 1000, signal })
  try {
    while (state.again) {
      state.again = false
      let isDone = false
      while (!isDone) isDone = await paced(async () => signal.aborted || step(core, subscriptionId, stepMax))
    }
  } catch (error) {
    if (!signal.aborted) logFailure(core.logger, 'pausing or resuming deliveries failed; will retry')(error)
  } finally {
    running.delete(subscriptionId)
  }
}

/** Pauses waiting deliveries, and those whose lease has expired. Returns the number found. */
function pause(core: Core, subscriptionId: string, limit: number) {
  const now = dateOf(core)
  const waiting: Filter<DeliveryDocument> = {
    destination: subscriptionId,
    $or: [
      { status: { $in: ['pending', 'retry_scheduled'] }, dueAt: { $exists: true } },
      { status: 'sending', dueAt: { $lte: now } },
    ],
    dueAt: { $exists: true },
  }
  return updateSome(core, waiting, 'due_by_destination', limit, [
    { $set: { status: 'held', heldDueAt: '$dueAt', updatedAt: now } },
    { $unset: ['dueAt', 'claim'] },
  ])
}

/**
 * Queues paused deliveries at random times in the spread, but not before they are due. Returns their number.
 */
async function resume(core: Core, subscriptionId: string, limit: number) {
  const paused = await countPaused(core, subscriptionId, spreadMaxMs / spreadPerDeliveryMs + 1)
  if (paused === 0) return 0
  const at = dateOf(core)
  const moment = {
    $add: [at, { $multiply: [{ $rand: {} }, Math.min((paused - 1) * spreadPerDeliveryMs, spreadMaxMs)] }],
  }
  const theirs = { destination: subscriptionId, status: 'held' as const }
  const again = queueAgain({ at, dueAt: { $max: ['$heldDueAt', moment] } })
  const released = await updateSome(core, theirs, 'held_since', limit, again)
  announceDue(core)
  return released
}

/** Index hints keep the database from reading all matching deliveries. */
async function updateSome(
  { db: { deliveries } }: Core,
  filter: Filter<DeliveryDocument>,
  hint: string,
  limit: number,
  update: Document[],
) {
  const ids = await findIds(deliveries, filter, { limit, batchSize: limit + 1, hint })
  if (ids.length > 0) await deliveries.updateMany({ $and: [{ _id: { $in: ids } }, filter] }, update, { hint: '_id_' })
  return ids.length
}

export const countPaused = ({ db }: Core, subscriptionId: string, max = pausedCountMax) =>
  db.deliveries.countDocuments({ destination: subscriptionId, status: 'held' }, { limit: max })

export async function pausedCounts(core: Core, subscriptionIds: string[]) {
  const paused = { destination: { $in: subscriptionIds }, status: 'held' as const }
  const counts = new Map<string, number>()
  for (const id of await core.db.deliveries.distinct('destination', paused)) counts.set(id, await countPaused(core, id))
  return counts
}

export const subscriptionsPaused = ({ db }: Core) =>
  db.deliveries.distinct('destination', { ...anyDestination, status: 'held' })

export const subscriptionsWaiting = ({ db }: Core) =>
  db.deliveries.distinct('destination', { ...anyDestination, dueAt: { $lte: endOfTime } })

/**
 * Makes the deliveries match the status of their subscriptions, after a crash or a race, and the clock,
 * after a core's clock was ahead.
 */
export async function reconcilePauses(core: Core) {
  const waiting = await subscriptionsWaiting(core)
  const paused = await subscriptionsPaused(core)
  if (waiting.length + paused.length > 0) await bringForward(core, waiting)
  const unpaused = await idsWithStatus(core, waiting, 'disabled')
  const unresumed = await idsWithStatus(core, paused, 'enabled')
  for (const subscriptionId of [...unpaused, ...unresumed]) await pauseDeliveries(core, subscriptionId)
}

async function idsWithStatus({ db }: Core, subscriptionIds: string[], status: SubscriptionStatus) {
  if (subscriptionIds.length === 0) return []
  const theirs = { _id: { $in: subscriptionIds }, status, ...notDeleted }
  return findIds(db.leadSubscriptions, theirs)
}

/**
 * Corrects due times that were computed while a core's clock was ahead: the pause counts from now. Looks at
 * scheduled retries, and at new deliveries of these subscriptions.
 */
async function bringForward(core: Core, subscriptionIds: string[]) {
  const { deliveries } = core.db
  const now = dateOf(core)
  const isAhead = { $gt: new Date(now.getTime() + clocksApartMs) }
  const pauseLeft = (due: string) => ({
    $cond: [isMissing(due), '$$REMOVE', { $add: [now, { $subtract: [due, '$updatedAt'] }] }],
  })
  const update = [{ $set: { dueAt: pauseLeft('$dueAt'), heldDueAt: pauseLeft('$heldDueAt'), updatedAt: now } }]
  await deliveries.updateMany({ next: { $exists: true }, updatedAt: isAhead }, update, { hint: 'scheduled' })
  if (subscriptionIds.length === 0) return
  await deliveries.updateMany(
    {
      subscriptionId: { $in: subscriptionIds },
      status: { $in: ['pending', 'sending'] },
      createdAt: isAhead,
      updatedAt: isAhead,
    },
    update,
    { hint: 'by_subscription_status' },
  )
}
