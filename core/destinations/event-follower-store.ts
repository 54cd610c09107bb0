import type { Collection } from 'mongodb'
import { type LeadSubscriptionDocument, notDeleted } from './lead-subscription-store.ts'
import { isHook } from './policy-model.ts'

/** A destination that receives events of the feed, and the last entry whose deliveries exist. */
export interface Follower {
  subscriptionId: string
  followedTo: number
  isHook: boolean
}

/** Finds the destinations that receive events of the feed. */
export interface EventFollowerStore {
  /** Returns those of the workspaces that have destinations which receive events of the feed. */
  followedWorkspaces(workspaceIds: string[]): Promise<string[]>
  /** Returns the destinations of a workspace that receive events of the feed. */
  followers(workspaceId: string): Promise<Follower[]>
  /** Returns the first workspaces after this id that have such destinations, in order. */
  nextFollowed(afterWorkspaceId: string, limit: number): Promise<string[]>
  /** Stores that the deliveries of all entries up to this number exist. */
  markFollowed(subscriptionIds: string[], number: number): Promise<void>
}

const following = { followedTo: { $gte: 0 }, ...notDeleted } as const

export function createEventFollowerStore({
  leadSubscriptions,
}: {
  leadSubscriptions: Collection<LeadSubscriptionDocument>
}): EventFollowerStore {
  return {
    followedWorkspaces: (workspaceIds) =>
      leadSubscriptions.distinct('workspaceId', { workspaceId: { $in: workspaceIds }, ...following }),

    async followers(workspaceId) {
      const found = leadSubscriptions.find(
        { workspaceId, ...following },
        { projection: { followedTo: 1, resource: 1 } },
      )
      return (await found.toArray()).map(({ _id, followedTo = 0, resource }) => ({
        subscriptionId: _id,
        followedTo,
        isHook: isHook({ resource }),
      }))
    },

    async nextFollowed(after, limit) {
      const found = await leadSubscriptions
        .aggregate<{ _id: string }>([
          { $match: { workspaceId: { $gt: after }, ...following } },
          { $group: { _id: '$workspaceId' } },
          { $sort: { _id: 1 } },
          { $limit: limit },
        ])
        .toArray()
      return found.map(({ _id }) => _id)
    },

    async markFollowed(subscriptionIds, number) {
      await leadSubscriptions.updateMany(
        { _id: { $in: subscriptionIds }, followedTo: { $lt: number } },
        { $set: { followedTo: number } },
      )
    },
  }
}
