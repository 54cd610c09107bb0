import type { Collection } from 'mongodb'
import type { WorkspaceDocument } from './workspace-store.ts'

export interface SavedReplyStore {
  /** Returns the replies of a workspace by shortcut; undefined if the workspace does not exist. */
  find(workspaceId: string): Promise<Record<string, string> | undefined>
  set(workspaceId: string, shortcut: string, body: string): Promise<void>
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

    async set(workspaceId, shortcut, body) {
      await workspaces.updateOne(existing(workspaceId), { $set: { [`savedReplies.${shortcut}`]: body } })
    },

    async remove(workspaceId, shortcut) {
      await workspaces.updateOne(existing(workspaceId), { $unset: { [`savedReplies.${shortcut}`]: '' } })
    },
  }
}
