import type { Bus } from '../bus.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { LeadSubscriptionStore } from './lead-subscription-store.ts'
import type { LeadSubscription } from './model.ts'

/** A subscription with the time at which it was read. It may come from the cache. */
export interface KnownSubscription {
  subscription: LeadSubscription
  /** Time at which the read began. */
  readAt: Date
}

/** Caches lead subscriptions, so that new deliveries and results rarely need to read them. */
export interface LiveSubscriptions {
  find(subscriptionId: string): Promise<KnownSubscription | undefined>
  /**
   * Removes the subscriptions from the caches of all cores. Resolves when the notification is
   * stored for the other cores.
   */
  changed(...subscriptionIds: string[]): Promise<void>
}

/**
 * Maximum age of a cached subscription in milliseconds. It limits how long other cores use outdated
 * settings if a core crashes before it notifies them of a change.
 */
const maxAgeMs = 5_000

export function createLiveSubscriptions(dependencies: {
  store: Pick<LeadSubscriptionStore, 'find'>
  bus: Bus
  wakeups: Pick<Wakeups, 'stateChanged' | 'isCurrent'>
  now: () => number
}): LiveSubscriptions {
  const { store, bus, wakeups, now } = dependencies
  const cache = createLiveCache<KnownSubscription>({
    bus,
    isCurrent: wakeups.isCurrent,
    maxEntries: 10_000,
    maxAgeMs,
    monotonic: now,
    async loadMany(ids) {
      const readAt = new Date(now())
      const found = await store.find(ids)
      return new Map(found.map((subscription) => [subscription.subscriptionId, { subscription, readAt }]))
    },
  })

  return { find: cache.get, changed: wakeups.stateChanged }
}
