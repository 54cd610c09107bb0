import type { Document, Filter } from 'mongodb'
import { createPace } from '../concurrency/pace.ts'
import { type Core, perCore } from '../core.ts'
import { findSubscriptions, notDeleted } from './live-subscriptions.ts'
import { anyDestination, type DeliveryDocument } from './model.ts'
import { announceDue, isMissing, queueAgain } from './queue.ts'
import type { SubscriptionStatus } from './subscription-model.ts'

/**
 * When a subscription is enabled, the due times of its held deliveries are spread over a period, to
 * protect the destination. The period grows by this interval per delivery, up to `spreadMaxMs`.
 */
const spreadPerDeliveryMs = 10
const spreadMaxMs = 30_000
/** Maximum number of deliveries that one step holds or releases. */
const stepMax = 200
/**
 * Maximum number of deliveries in the first step. The call that changes the subscription waits for
 * this step, so the number is lower.
 */
const firstStepMax = 60
/** Counts of held deliveries end at this number, because a count reads each delivery. */
const heldCountMax = 10_000
/** Maximum share of the time that the steps of a subscription take. */
const share = 1 / 5
const maxPauseMs = 1000
/** Maximum difference of the cores' clocks in milliseconds. A later time is wrong. */
const clocksApartMs = 2_000
/**
 * The latest possible date. As an upper bound on `dueAt`, it lets the index alone answer the query.
 */
const endOfTime = new Date(8.64e15)

const backgroundOf = perCore(() => {
  /**
   * Subscriptions whose deliveries are held or released in the background. `again` is set if the
   * status of the subscription may have changed.
   */
  const running = new Map<string, { again: boolean }>()
  return { closed: new AbortController(), running }
})

/** Ends the work in the background. `reconcileHolds` completes it later. */
export const closeHolds = (core: Core) => backgroundOf(core).closed.abort()

/**
 * Holds the waiting deliveries of a disabled subscription: the first ones at once, the others
 * later in the background, in steps with pauses. Claims skip deliveries of the subscription that
 * are not held yet.
 */
export async function holdDeliveries(core: Core, subscriptionId: string) {
  if (!backgroundOf(core).running.has(subscriptionId)) await applyStatus(core, subscriptionId)
}

/**
 * If the subscription is disabled, holds its deliveries, as `holdDeliveries` does. If the subscription
 * is enabled, queues its held deliveries again, in the same steps. Repeats this if the status of the
 * subscription changed in the meantime.
 */
export async function applyStatus(core: Core, subscriptionId: string) {
  for (let completed: SubscriptionStatus | undefined; ; ) {
    const done = await step(core, subscriptionId, firstStepMax, completed)
    if (!done) return
    if (done.completed === undefined) return continueLater(core, subscriptionId)
    completed = done.completed
  }
}

/**
 * Holds or releases up to `limit` deliveries, depending on the status of the subscription.
 * `completed` is the status for which earlier steps have already changed all deliveries. If the
 * subscription still has that status, changes nothing and returns undefined.
 */
async function step(core: Core, subscriptionId: string, limit: number, completed?: SubscriptionStatus) {
  const [subscription] = await findSubscriptions(core, [subscriptionId])
  if (!subscription || subscription.status === completed) return undefined
  const { status } = subscription
  const changed = await (status === 'disabled' ? hold : release)(core, subscriptionId, limit)
  return { completed: changed < limit ? status : undefined }
}

function continueLater(core: Core, subscriptionId: string) {
  const { closed, running } = backgroundOf(core)
  const state = running.get(subscriptionId)
  if (state) state.again = true
  else if (!closed.signal.aborted) void finishLater(core, subscriptionId)
}

async function finishLater(core: Core, subscriptionId: string) {
  const { closed, running } = backgroundOf(core)
  const { signal } = closed
  const state = { again: true }
  running.set(subscriptionId, state)
  const paced = createPace({ share, maxPauseMs, signal })
  try {
    while (state.again) {
      state.again = false
      for (let completed: SubscriptionStatus | undefined; ; ) {
        const done = await paced(async () => {
          if (!signal.aborted) return step(core, subscriptionId, stepMax, completed)
        })
        if (!done) break
        completed = done.completed
      }
    }
  } catch (error) {
    if (!signal.aborted)
      core.logger.warn({ reason: (error as Error).name }, 'holding or releasing deliveries failed; will retry')
  } finally {
    running.delete(subscriptionId)
  }
}

/** Holds deliveries that wait for an attempt, and those whose lease has expired. Returns the number found. */
function hold(core: Core, subscriptionId: string, limit: number) {
  const now = new Date(core.now())
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
 * Queues held deliveries again. Each becomes due at a random time within the spread, but not before
 * its original due time. Returns the number found.
 */
async function release(core: Core, subscriptionId: string, limit: number) {
  const held = await countHeld(core, subscriptionId, spreadMaxMs / spreadPerDeliveryMs + 1)
  if (held === 0) return 0
  const at = new Date(core.now())
  const moment = { $add: [at, { $multiply: [{ $rand: {} }, Math.min((held - 1) * spreadPerDeliveryMs, spreadMaxMs)] }] }
  const theirs = { destination: subscriptionId, status: 'held' as const }
  const again = queueAgain({ at, dueAt: { $max: ['$heldDueAt', moment] } })
  const released = await updateSome(core, theirs, 'held_since', limit, again)
  announceDue(core)
  return released
}

/**
 * Updates at most `limit` matching deliveries. Without index hints, the database would read all
 * matching deliveries.
 */
async function updateSome(
  { db: { deliveries } }: Core,
  filter: Filter<DeliveryDocument>,
  hint: string,
  limit: number,
  update: Document[],
) {
  const found = await deliveries
    .find(filter, { projection: { _id: 1 }, batchSize: limit + 1, hint })
    .limit(limit)
    .toArray()
  const ids = found.map(({ _id }) => _id)
  if (ids.length > 0) await deliveries.updateMany({ $and: [{ _id: { $in: ids } }, filter] }, update, { hint: '_id_' })
  return ids.length
}

/** Counts the held deliveries of the subscription, up to `max`. */
export const countHeld = ({ db }: Core, subscriptionId: string, max = heldCountMax) =>
  db.deliveries.countDocuments({ destination: subscriptionId, status: 'held' }, { limit: max })

/** Returns the number of held deliveries per subscription, counted up to `heldCountMax`. */
export async function heldCounts(core: Core, subscriptionIds: string[]) {
  const held = { destination: { $in: subscriptionIds }, status: 'held' as const }
  const counts = new Map<string, number>()
  for (const id of await core.db.deliveries.distinct('destination', held)) counts.set(id, await countHeld(core, id))
  return counts
}

/** Returns the ids of subscriptions with held deliveries. */
export const subscriptionsHolding = ({ db }: Core) =>
  db.deliveries.distinct('destination', { ...anyDestination, status: 'held' })

/** Returns the ids of subscriptions with queued deliveries. */
export const subscriptionsWaiting = ({ db }: Core) =>
  db.deliveries.distinct('destination', { ...anyDestination, dueAt: { $lte: endOfTime } })

/**
 * Makes the deliveries match the status of their subscriptions, after a crash or a race, and their due
 * times match the clock, after a core's clock was ahead.
 */
export async function reconcileHolds(core: Core) {
  const waiting = await subscriptionsWaiting(core)
  const holding = await subscriptionsHolding(core)
  if (waiting.length + holding.length > 0) await bringForward(core, waiting)
  const pending = [
    ...(await idsWithStatus(core, waiting, 'disabled')),
    ...(await idsWithStatus(core, holding, 'enabled')),
  ]
  for (const subscriptionId of pending) await holdDeliveries(core, subscriptionId)
}

async function idsWithStatus({ db }: Core, subscriptionIds: string[], status: SubscriptionStatus) {
  if (subscriptionIds.length === 0) return []
  const theirs = { _id: { $in: subscriptionIds }, status, ...notDeleted }
  return (await db.leadSubscriptions.find(theirs, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id)
}

/**
 * Corrects due times that were computed while a core's clock was ahead: the pause of the delivery
 * counts from now. Looks at scheduled retries, and at new deliveries of these subscriptions.
 */
async function bringForward(core: Core, subscriptionIds: string[]) {
  const { deliveries } = core.db
  const now = new Date(core.now())
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
