import type { DeliveryHoldStore } from '../delivery-stores/delivery-hold-store.ts'
import type { DeliveryQueue } from '../delivery-stores/delivery-queue-store.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import type { CoreMetrics } from '../metrics.ts'

const countedMax = 1000
/** Number of destinations whose queues the metrics show. */
const shownQueuesMax = 10

/**
 * Returns a function that measures the queue of deliveries. It counts at most `countedMax` index
 * entries, however long the queue is. A scrape returns the last values, so it never waits for the
 * database. Rejects with the errors of the stores.
 */
export function createQueueMeasurement(dependencies: {
  queue: Pick<DeliveryQueue, 'upcoming'>
  holds: Pick<DeliveryHoldStore, 'countAllHeld'>
  subscriptions: Pick<LeadSubscriptionStore, 'find'>
  /** Destinations to which workers are sending. */
  busyDestinations: () => string[]
  metrics: CoreMetrics
  now: () => number
}): () => Promise<void> {
  const { queue, holds, subscriptions, busyDestinations, metrics, now } = dependencies
  const isDue = ({ dueAt }: { dueAt: Date }) => dueAt.getTime() <= now()

  return async () => {
    const upcoming = await queue.upcoming(countedMax)
    const due = upcoming.filter(isDue)
    const held = await holds.countAllHeld(countedMax)
    // Deliveries to busy destinations wait because the destination is slow, not because workers are
    // missing.
    const [oldest] = (await queue.upcoming(1, busyDestinations())).filter(isDue)
    metrics.deliveriesDue.set(due.length)
    metrics.deliveriesScheduled.set(upcoming.length - due.length)
    metrics.deliveriesHeld.set(held)
    metrics.oldestDueAge.set(oldest === undefined ? 0 : (now() - oldest.dueAt.getTime()) / 1000)
    const longest = [...Map.groupBy(upcoming, ({ destination }) => destination)]
      .toSorted(([, one], [, other]) => other.length - one.length)
      .slice(0, shownQueuesMax)
    const found = longest.length === 0 ? [] : await subscriptions.find(longest.map(([id]) => id))
    const workspaces = new Map(found.map(({ subscriptionId, workspaceId }) => [subscriptionId, workspaceId]))
    metrics.longestQueues.reset()
    for (const [subscription, { length }] of longest)
      metrics.longestQueues.set({ workspace: workspaces.get(subscription) ?? '', subscription }, length)
  }
}

/** Returns a function that measures the state of destinations, by two index scans. */
export function createDestinationMeasurement(dependencies: {
  subscriptions: Pick<LeadSubscriptionStore, 'countDisabled' | 'failingSince'>
  metrics: Pick<CoreMetrics, 'disabledSubscriptions' | 'failingDestination'>
  now: () => number
}): () => Promise<void> {
  const { subscriptions, metrics, now } = dependencies
  return async () => {
    const since = await subscriptions.failingSince()
    metrics.failingDestination.set(since === undefined ? 0 : (now() - since.getTime()) / 1000)
    for (const [reason, count] of await subscriptions.countDisabled())
      metrics.disabledSubscriptions.set({ reason }, count)
  }
}
