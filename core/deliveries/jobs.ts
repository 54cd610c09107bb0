import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { waitOf } from '../../contract/delivery-waits.ts'
import { measureAtScrape } from '../../platform/observability/metrics.ts'
import { createJobs } from '../concurrency/job.ts'
import { assignmentEvents } from '../conversations/assignments.ts'
import { botEvents } from '../conversations/bots.ts'
import { reconcileMessageStates } from '../conversations/message-states.ts'
import { isRedaction } from '../conversations/model.ts'
import { reconcileStates } from '../conversations/state-events.ts'
import { tagEvents } from '../conversations/tags.ts'
import type { Core } from '../core.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { deliveryDispatchOf } from './dispatch.ts'
import { pendingFaultsOf } from './faults.ts'
import { leadFanOutOf } from './lead-capture.ts'
import { findSubscriptions } from './live-subscriptions.ts'
import { anyDestination } from './model.ts'
import { reconcilePauses } from './pauses.ts'
import { deliveryQueueOf } from './queue.ts'
import { proceedRecoveries } from './recovery.ts'
import { applyRedactions } from './redactions.ts'
import { changedSourcesOf } from './sources.ts'
import { disabledByService } from './subscription-model.ts'
import { unsweptSuppressionsOf } from './suppressing.ts'

const everyMs = 60_000
const reconcileEveryMs = 30_000

export const deliveryJobs = (core: Core) =>
  createJobs(core, {
    'end deliveries of suppressed people': [everyMs, unsweptSuppressionsOf(core).run],
    'finish lead fan-out': [everyMs, leadFanOutOf(core).run],
    'disable subscriptions': [everyMs, pendingFaultsOf(core).run],
    'hold and release deliveries': [everyMs, () => reconcilePauses(core)],
    'recover deliveries': [everyMs, () => proceedRecoveries(core)],
    'reconcile conversations': [reconcileEveryMs, () => reconcileConversations(core)],
  })

/** Completes what dead processes began. */
async function reconcileConversations(core: Core) {
  await applyRedactions(core, (await reconcileMessageStates(core)).filter(isRedaction))
  await reconcileStates(core, assignmentEvents)
  await reconcileStates(core, botEvents)
  await reconcileStates(core, tagEvents)
}

export const deliveryLags = (core: Core): Record<string, () => number> => ({
  lead_fan_out: leadFanOutOf(core).lagMs,
  faults: pendingFaultsOf(core).lagMs,
  suppressions: unsweptSuppressionsOf(core).lagMs,
})

/** Makes the parts that follow the bus, and the measurements of a scrape. */
export function openDeliveries(core: Core) {
  changedSourcesOf(core)
  deliveryDispatchOf(core)
  const { disabledSubscriptions, deliveriesDue } = core.metrics
  measureAtScrape(disabledSubscriptions, 30_000, () => measureDestinations(core))
  measureAtScrape(deliveriesDue, 5_000, () => measureQueue(core))
}

const countedMax = 1000
const shownQueuesMax = 10

/** Counts up to `countedMax`. A scrape returns the last values, so it never waits for the database. */
export async function measureQueue(core: Core) {
  const { metrics, now, db } = core
  const queue = deliveryQueueOf(core)
  // The index of the queue has no status: its entries wait like retries.
  const isDue = ({ dueAt }: { dueAt: Date }) =>
    waitOf(DeliveryStatus.RETRY_SCHEDULED, dueAt.getTime(), now()) === 'worker'
  const upcoming = await queue.upcoming(countedMax)
  const due = upcoming.filter(isDue)
  const paused = await db.deliveries.countDocuments({ ...anyDestination, status: 'held' }, { limit: countedMax })
  // A busy destination is slow; its deliveries do not show that workers are missing.
  const [oldest] = (await queue.upcoming(1, deliveryDispatchOf(core).busyDestinations())).filter(isDue)
  metrics.deliveriesDue.set(due.length)
  metrics.deliveriesScheduled.set(upcoming.length - due.length)
  metrics.deliveriesHeld.set(paused)
  metrics.oldestDueAge.set(oldest === undefined ? 0 : (now() - oldest.dueAt.getTime()) / 1000)
  const longest = [...Map.groupBy(upcoming, ({ destination }) => destination)]
    .toSorted(([, one], [, other]) => other.length - one.length)
    .slice(0, shownQueuesMax)
  const ids = longest.map(([id]) => id)
  const found = ids.length === 0 ? [] : await findSubscriptions(core, ids)
  const workspaces = new Map(found.map(({ subscriptionId, workspaceId }) => [subscriptionId, workspaceId]))
  metrics.longestQueues.reset()
  for (const [subscription, { length }] of longest)
    metrics.longestQueues.set({ workspace: workspaces.get(subscription) ?? '', subscription }, length)
}

export async function measureDestinations({ db: { leadSubscriptions }, metrics, now }: Core) {
  const failing = { failingSince: { $exists: true }, status: 'enabled' as const, ...notDeleted }
  const oldest = { projection: { failingSince: 1 }, sort: { failingSince: 1 }, hint: 'by_failing' } as const
  const since = (await leadSubscriptions.findOne(failing, oldest))?.failingSince
  metrics.failingDestination.set(since === undefined ? 0 : (now() - since.getTime()) / 1000)
  for (const disabledReason of disabledByService) {
    const options = { limit: countedMax, hint: 'by_disabled' }
    const count = await leadSubscriptions.countDocuments({ disabledReason, ...notDeleted }, options)
    metrics.disabledSubscriptions.set({ reason: disabledReason }, count)
  }
}
