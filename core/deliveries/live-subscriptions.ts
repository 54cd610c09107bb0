import { type Core, perCore } from '../core.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { liveCacheOf } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { type LeadSubscription, toSubscription } from './subscription-model.ts'

/** A subscription, perhaps from the cache, and when its read began. */
export interface KnownSubscription {
  subscription: LeadSubscription
  readAt: Date
}

/** Other cores use outdated settings for this time at most, if a core crashes before it notifies them. */
const maxAgeMs = 5_000

export const followingFeed = { followedTo: { $gte: 0 }, ...notDeleted } as const

/** Id of the cache entry that tells whether feed events of a workspace are sent. */
export const followersOf = (workspaceId: string) => `followers ${workspaceId}`

export const findSubscriptions = async ({ db }: Core, subscriptionIds: string[]) =>
  (await db.leadSubscriptions.find({ _id: { $in: subscriptionIds }, ...notDeleted }).toArray()).map(toSubscription)

export const liveSubscriptionsOf = perCore((core) => {
  const { db, now } = core
  const options = { maxEntries: 10_000, maxAgeMs, monotonic: now }
  const cache = liveCacheOf<KnownSubscription>(core, {
    ...options,
    async loadMany(ids) {
      const readAt = new Date(now())
      const found = await findSubscriptions(core, ids)
      return new Map(found.map((subscription) => [subscription.subscriptionId, { subscription, readAt }]))
    },
  })
  const followed = liveCacheOf<boolean>(core, {
    ...options,
    async loadMany(ids) {
      const workspaceIds = new Map(ids.map((id) => [id.slice(followersOf('').length), id]))
      const among = { workspaceId: { $in: [...workspaceIds.keys()] } }
      const found = new Set(await db.leadSubscriptions.distinct('workspaceId', { ...among, ...followingFeed }))
      return new Map([...workspaceIds].map(([workspaceId, id]) => [id, found.has(workspaceId)]))
    },
  })

  return {
    find: cache.get,
    isFollowed: async (workspaceId: string) => (await followed.get(followersOf(workspaceId))) === true,
    /** Resolves when the notification is stored for the other cores. */
    changed: wakeupsOf(core).stateChanged,
  }
})
