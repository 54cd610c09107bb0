import type { Collection } from 'mongodb'
import type { VisitorIds } from '../sessions/visitor-ids-model.ts'

/** Ban of a browser or a verified visitor. An erasure keeps it without the reason. */
export interface VisitorDocument {
  _id: string
  workspaceId: string
  /**
   * Connection of the visitor. The deletion of the connection deletes the ban. Absent in bans that
   * hold in the whole workspace.
   */
  connectionId?: string
  bannedAt?: Date
  /** Stored only with the ban on a connection, because an erasure finds that ban. */
  banReason?: string
}

export interface BanStore {
  ban(
    visitor: Pick<VisitorIds, 'workspaceIds' | 'connectionIds'>,
    ban: { at: Date; reason: string; workspaceId: string; connectionId: string },
  ): Promise<void>
  unban(visitorIds: string[]): Promise<void>
  /** Returns true if at least one of these browsers and verified visitors is banned. */
  isBanned(visitorIds: string[]): Promise<boolean>
}

export function createBanStore({ visitors }: { visitors: Collection<VisitorDocument> }): BanStore {
  return {
    async ban({ workspaceIds, connectionIds }, { at, reason, workspaceId, connectionId }) {
      const ban = { bannedAt: at, workspaceId }
      const upsert = (_id: string, $set: Partial<VisitorDocument>) => ({
        updateOne: { filter: { _id }, update: { $set }, upsert: true },
      })
      await visitors.bulkWrite([
        ...workspaceIds.map((id) => upsert(id, ban)),
        ...connectionIds.map((id) => upsert(id, { ...ban, banReason: reason, connectionId })),
      ])
    },

    async unban(visitorIds) {
      await visitors.deleteMany({ _id: { $in: visitorIds } })
    },

    async isBanned(visitorIds) {
      const filter = { _id: { $in: visitorIds }, bannedAt: { $exists: true } }
      return (await visitors.findOne(filter, { projection: { _id: 1 } })) !== null
    },
  }
}
