import type { Bus } from '../bus.ts'
import { createLiveCache } from '../log/live-cache.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { LeadSubscription, LeadSubscriptionStore } from './lead-subscription-store.ts'

/** A subscription as it was at most a second ago. */
export interface KnownSubscription {
  subscription: LeadSubscription
  /** Not later than it was read. */
  readAt: Date
}

/** What new deliveries and results go by, remembered between them. */
export interface LiveSubscriptions {
  find(subscriptionId: string): Promise<KnownSubscription | undefined>
  /** These are not as they were: every core is told. Resolves when the others can see it. */
  changed(...subscriptionIds: string[]): Promise<void>
}

/** A core that dies between a change and telling of it costs the others this much time, in milliseconds. */
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
