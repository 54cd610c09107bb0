import type { Session } from '../visitors/model.ts'
import { toSession } from '../visitors/session-store.ts'
import type { DataStore } from './data-store.ts'
import type { DeletionKind } from './model.ts'
import { atOnce, documents, idOnly, ids, type Part } from './parts-store.ts'
import type { PrivacyCollections } from './visitor-data-store.ts'

export interface Deleted {
  kind: DeletionKind
  id: string
  workspaceId: string
}

const notDeleted = { deleted: { $exists: false } } as const

export type DeletionStore = ReturnType<typeof createDeletionStore>

/** Marks workspaces, connections, installations and lead subscriptions, and lists what belongs to them. */
export function createDeletionStore(
  collections: PrivacyCollections & { data: Pick<DataStore, 'deliveryPart' | 'leadPart' | 'sessionPart'> },
) {
  const { workspaces, connections, installations, leadSubscriptions, suppressions, policyChanges } = collections
  const { sessions, conversations, erasures, visitors, consoleSessions, signInLinks, data } = collections

  /**
   * Returns a filter for each collection. It matches the objects that the deletion marks and
   * removes.
   */
  function within({ kind, id, workspaceId }: Deleted) {
    const isWorkspace = kind === 'workspace'
    return {
      workspaces: isWorkspace ? { _id: id } : undefined,
      connections: isWorkspace ? { workspaceId: id } : kind === 'connection' ? { _id: id } : undefined,
      installations: isWorkspace
        ? { workspaceId: id }
        : kind === 'connection'
          ? { workspaceId, connectionId: id }
          : kind === 'installation'
            ? { _id: id }
            : undefined,
      subscriptions: isWorkspace ? { workspaceId: id } : kind === 'subscription' ? { _id: id } : undefined,
    }
  }

  /** Returns the connections of a workspace, or the deleted connection. Empty for other objects. */
  const connectionsIn = async (deleted: Deleted): Promise<string[]> => {
    const filter = within(deleted).connections
    return filter ? ids(await connections.find(filter, idOnly).toArray()) : []
  }

  const siteKeysIn = async (deleted: Deleted) => {
    const filter = within(deleted).installations
    return filter ? ids(await installations.find(filter, idOnly).toArray()) : []
  }

  /** Parts of a workspace beside its conversations and objects. */
  function partsOfWorkspace(workspaceId: string): Part[] {
    const rest = [suppressions, policyChanges, erasures, visitors, consoleSessions, signInLinks]
    return [
      data.deliveryPart({ workspaceId }),
      data.leadPart({ workspaceId }),
      ...rest.map((collection) => documents(collection as never, { workspaceId } as never)),
    ]
  }

  return {
    connectionsIn,

    /** Returns the workspace of an object, even if its deletion has begun. */
    async workspaceOf(kind: DeletionKind, id: string): Promise<string | undefined> {
      if (kind === 'workspace') return (await workspaces.findOne({ _id: id }, idOnly))?._id
      const projection = { workspaceId: 1 } as const
      if (kind === 'connection') return (await connections.findOne({ _id: id }, { projection }))?.workspaceId
      if (kind === 'installation') return (await installations.findOne({ _id: id }, { projection }))?.workspaceId
      return (await leadSubscriptions.findOne({ _id: id }, { projection }))?.workspaceId
    },

    /**
     * Marks the object and the objects in it as deleted. Queries then skip them. Returns whether this
     * call marked at least one object.
     */
    async mark(deleted: Deleted): Promise<boolean> {
      const filter = within(deleted)
      const marked = [
        filter.installations &&
          (await installations.updateMany(
            { ...filter.installations, ...notDeleted },
            { $set: { deleted: true, enabled: false } },
          )),
        filter.workspaces &&
          (await workspaces.updateMany({ ...filter.workspaces, ...notDeleted }, { $set: { deleted: true } })),
        filter.connections &&
          (await connections.updateMany(
            { ...filter.connections, ...notDeleted },
            { $set: { deleted: true, status: 'disabled' }, $inc: { statusVersion: 1 } },
          )),
        filter.subscriptions &&
          (await leadSubscriptions.updateMany(
            { ...filter.subscriptions, ...notDeleted },
            { $set: { deleted: true, status: 'disabled', disabledReason: 'operator', automatic: false } },
          )),
      ]
      return marked.some((result) => result !== undefined && result.modifiedCount > 0)
    },

    /** Returns the site keys, and the ids of the connections and subscriptions, of the deleted object. */
    async idsIn(deleted: Deleted): Promise<string[]> {
      const filter = within(deleted).subscriptions
      const subscriptions = filter ? ids(await leadSubscriptions.find(filter, idOnly).toArray()) : []
      return [...(await siteKeysIn(deleted)), ...(await connectionsIn(deleted)), ...subscriptions]
    },

    /** Returns visible conversations of the connections. */
    visibleConversations: async (connectionIds: string[], limit: number) => {
      const visible = { connectionId: { $in: connectionIds }, erasing: { $exists: false } }
      return ids(await conversations.find(visible, idOnly).limit(limit).toArray())
    },

    hasConversations: async (connectionIds: string[]) =>
      (await conversations.findOne({ connectionId: { $in: connectionIds } }, idOnly)) !== null,

    sessionsOn: async (publicSiteKey: string, limit: number): Promise<Session[]> =>
      (await sessions.find({ publicSiteKey }).limit(limit).toArray()).map(toSession),

    /** Returns which conversations are not hidden (`visible`), and which do not exist (`missing`). */
    async stateOf(conversationIds: string[]): Promise<{ visible: string[]; missing: string[] }> {
      const found = await conversations
        .find({ _id: { $in: conversationIds } }, { projection: { erasing: 1 } })
        .toArray()
      const known = new Set(ids(found))
      return {
        visible: ids(found.filter(({ erasing }) => erasing === undefined)),
        missing: conversationIds.filter((id) => !known.has(id)),
      }
    },

    /** Parts of an object whose conversations have been removed. The object itself is the last. */
    async partsOf(deleted: Deleted): Promise<Part[]> {
      const { kind, id } = deleted
      const filter = within(deleted)
      const connectionIds = await connectionsIn(deleted)
      return [
        ...(kind === 'subscription' ? [data.deliveryPart({ subscriptionId: id })] : []),
        // Sessions whose conversation was never stored.
        data.sessionPart({ publicSiteKey: { $in: await siteKeysIn(deleted) } }),
        ...(kind === 'workspace' ? partsOfWorkspace(id) : []),
        atOnce(async () => {
          await visitors.deleteMany({ connectionId: { $in: connectionIds } })
          if (filter.installations) await installations.deleteMany(filter.installations)
          if (filter.connections) await connections.deleteMany(filter.connections)
          if (filter.subscriptions) await leadSubscriptions.deleteMany(filter.subscriptions)
          if (filter.workspaces) await workspaces.deleteMany(filter.workspaces)
        }),
      ]
    },
  }
}
