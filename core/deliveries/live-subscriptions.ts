import type { Bus } from '../bus.ts'
import { createLiveCache } from '../log/live-cache.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { LeadSubscription, LeadSubscriptionStore } from './lead-subscription-store.ts'

/** A cached subscription, at most a second old. */
export interface KnownSubscription {
  subscription: LeadSubscription
  /** Not later than the read. */
  readAt: Date
}

/** Cached subscriptions for new deliveries and results. */
export interface LiveSubscriptions {
  find(subscriptionId: string): Promise<KnownSubscription | undefined>
  /** Invalidates the subscriptions on every core. Resolves when the other cores can see it. */
  changed(...subscriptionIds: string[]): Promise<void>
}

/**
 * How long other cores may use a stale entry if a core dies before notifying them, in milliseconds.
 */
const maxAgeMs = 10_000

export function createLiveSubscriptions(dependencies: {
  store: Pick<LeadSubscriptionStore, 'find'>
  bus: Bus
  wakeups: Pick<Wakeups, 'stateChanged' | 'isCurrent'>
  now: () => number
}): LiveSubscriptions {
  const { store, bus, wakeups, now } = dependencies
  const cache = createLiveCache<KnownSubscription>({
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

  bus.on('changed', (ids) => {
    for (const id of ids) cache.invalidate(id)
  })
  bus.on('gap', cache.clear)

  return {
    find: cache.get,
    changed: wakeups.stateChanged,
  }
}
