import type { Collection } from 'mongodb'
import type { WorkspaceDocument } from './workspace-store.ts'

export interface SavedReplyStore {
  /** Returns the replies of a workspace by shortcut; undefined if the workspace does not exist. */
  find(workspaceId: string): Promise<Record<string, string> | undefined>
  /** Stores a reply. Returns false if the workspace has `max` other replies, or does not exist any more. */
  set(workspaceId: string, reply: { shortcut: string; body: string }, max: number): Promise<boolean>
  remove(workspaceId: string, shortcut: string): Promise<void>
}

/** Saved replies are part of their workspace's document, so a deletion removes them with it. */
export function createSavedReplyStore({ workspaces }: { workspaces: Collection<WorkspaceDocument> }): SavedReplyStore {
  const existing = (workspaceId: string) => ({ _id: workspaceId, deleted: { $exists: false } })
  return {
    async find(workspaceId) {
      const found = await workspaces.findOne(existing(workspaceId), { projection: { savedReplies: 1 } })
      return found ? (found.savedReplies ?? {}) : undefined
    },

    async set(workspaceId, { shortcut, body }, max) {
      const field = `savedReplies.${shortcut}`
      const others = { $size: { $objectToArray: { $ifNull: ['$savedReplies', {}] } } }
      const hasPlace = { $or: [{ [field]: { $exists: true } }, { $expr: { $lt: [others, max] } }] }
      const { matchedCount } = await workspaces.updateOne(
        { ...existing(workspaceId), ...hasPlace },
        { $set: { [field]: body } },
      )
      return matchedCount > 0
    },

    async remove(workspaceId, shortcut) {
      await workspaces.updateOne(existing(workspaceId), { $unset: { [`savedReplies.${shortcut}`]: '' } })
    },
  }
}
