import type { Bus } from '../bus.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { EventFollowerStore } from './event-follower-store.ts'
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
  /** Whether destinations of the workspace receive events of the feed. */
  isFollowed(workspaceId: string): Promise<boolean>
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

/** Id of the cache entry that tells whether destinations of a workspace receive feed events. */
export const followersOf = (workspaceId: string): string => `followers ${workspaceId}`

export function createLiveSubscriptions(dependencies: {
  store: Pick<LeadSubscriptionStore, 'find'>
  followerStore: Pick<EventFollowerStore, 'followedWorkspaces'>
  bus: Bus
  wakeups: Pick<Wakeups, 'stateChanged' | 'isCurrent'>
  now: () => number
}): LiveSubscriptions {
  const { store, followerStore, bus, wakeups, now } = dependencies
  const options = { bus, isCurrent: wakeups.isCurrent, maxEntries: 10_000, maxAgeMs, monotonic: now }
  const cache = createLiveCache<KnownSubscription>({
    ...options,
    async loadMany(ids) {
      const readAt = new Date(now())
      const found = await store.find(ids)
      return new Map(found.map((subscription) => [subscription.subscriptionId, { subscription, readAt }]))
    },
  })

  const followed = createLiveCache<boolean>({
    ...options,
    async loadMany(ids) {
      const workspaceIds = new Map(ids.map((id) => [id.slice(followersOf('').length), id]))
      const found = new Set(await followerStore.followedWorkspaces([...workspaceIds.keys()]))
      return new Map([...workspaceIds].map(([workspaceId, id]) => [id, found.has(workspaceId)]))
    },
  })

  return {
    find: cache.get,
    isFollowed: async (workspaceId) => (await followed.get(followersOf(workspaceId))) === true,
    changed: wakeups.stateChanged,
  }
}
