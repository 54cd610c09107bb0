import type { Collection } from 'mongodb'
import type { SuppressionDocument } from '../leads/suppression-store.ts'
import type { ConsoleSessionDocument, SignInLinkDocument } from '../operators/console-session-store.ts'
import type { Session } from '../visitors/model.ts'
import { toSession } from '../visitors/session-store.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from '../workspaces/workspace-store.ts'
import type { ErasureDocument } from './erasure-store.ts'
import type { DeletionKind } from './model.ts'
import type { VisitorCollections } from './visitor-data-store.ts'

interface Deleted {
  kind: DeletionKind
  id: string
  workspaceId: string
}

/** Marks and removes workspaces, connections, installations and lead subscriptions. */
export interface DeletionStore {
  /** Returns the workspace of an object, even if its deletion has begun. */
  workspaceOf(kind: DeletionKind, id: string): Promise<string | undefined>
  /**
   * Marks the object and the objects in it as deleted. Queries then skip them. Returns whether this
   * call marked at least one object.
   */
  mark(deleted: Deleted): Promise<boolean>
  /** Returns the site keys, and the ids of the connections and subscriptions, of the deleted object. */
  idsIn(deleted: Deleted): Promise<string[]>
  /**
   * Returns the connections of a workspace, or the connection itself if it is the deleted object.
   * Returns an empty list for other objects.
   */
  connectionsIn(deleted: Deleted): Promise<string[]>
  siteKeysIn(deleted: Deleted): Promise<string[]>
  /** Returns visible conversations of the connection. */
  visibleConversations(connectionId: string, limit: number): Promise<string[]>
  hasConversations(connectionIds: string[]): Promise<boolean>
  sessionsOn(publicSiteKeys: string[], limit: number): Promise<Session[]>
  /** Returns which conversations are not hidden (`visible`), and which do not exist (`missing`). */
  stateOf(conversationIds: string[]): Promise<{ visible: string[]; missing: string[] }>
  leadsIn(workspaceId: string, limit: number): Promise<string[]>
  /**
   * Removes suppressions, erasures, bans and operators' sign-ins of a workspace. Returns the number of removed documents; 0
   * when none is left.
   */
  removeRest(workspaceId: string, limit: number): Promise<number>
  /** Removes the object and the objects in it. */
  remove(deleted: Deleted): Promise<void>
}

interface DeletionCollections extends VisitorCollections {
  workspaces: Collection<WorkspaceDocument>
  connections: Collection<ConnectionDocument>
  installations: Collection<InstallationDocument>
  suppressions: Collection<SuppressionDocument>
  erasures: Collection<ErasureDocument>
  consoleSessions: Collection<ConsoleSessionDocument>
  signInLinks: Collection<SignInLinkDocument>
}

const idOnly = { projection: { _id: 1 } } as const
const ids = (found: { _id: string }[]) => found.map(({ _id }) => _id)
const notDeleted = { deleted: { $exists: false } } as const

export function createDeletionStore(collections: DeletionCollections): DeletionStore {
  const { workspaces, connections, installations, leadSubscriptions, suppressions, policyChanges } = collections
  const { sessions, conversations, leads, erasures, visitors, consoleSessions, signInLinks } = collections

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

  const connectionsIn = async (deleted: Deleted) => {
    const filter = within(deleted).connections
    return filter ? ids(await connections.find(filter, idOnly).toArray()) : []
  }

  const siteKeysIn = async (deleted: Deleted) => {
    const filter = within(deleted).installations
    return filter ? ids(await installations.find(filter, idOnly).toArray()) : []
  }

  async function idsIn(deleted: Deleted) {
    const filter = within(deleted).subscriptions
    const subscriptions = filter ? ids(await leadSubscriptions.find(filter, idOnly).toArray()) : []
    return [...(await siteKeysIn(deleted)), ...(await connectionsIn(deleted)), ...subscriptions]
  }

  return {
    async workspaceOf(kind, id) {
      if (kind === 'workspace') return (await workspaces.findOne({ _id: id }, idOnly))?._id
      const projection = { workspaceId: 1 } as const
      if (kind === 'connection') return (await connections.findOne({ _id: id }, { projection }))?.workspaceId
      if (kind === 'installation') return (await installations.findOne({ _id: id }, { projection }))?.workspaceId
      return (await leadSubscriptions.findOne({ _id: id }, { projection }))?.workspaceId
    },

    async mark(deleted) {
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

    idsIn,
    connectionsIn,
    siteKeysIn,

    async visibleConversations(connectionId, limit) {
      const visible = { connectionId, erasing: { $exists: false } }
      return ids(await conversations.find(visible, idOnly).limit(limit).toArray())
    },

    async hasConversations(connectionIds) {
      return (await conversations.findOne({ connectionId: { $in: connectionIds } }, idOnly)) !== null
    },

    async sessionsOn(publicSiteKeys, limit) {
      const found = sessions.find({ publicSiteKey: { $in: publicSiteKeys } }).limit(limit)
      return (await found.toArray()).map(toSession)
    },

    async stateOf(conversationIds) {
      const found = await conversations
        .find({ _id: { $in: conversationIds } }, { projection: { erasing: 1 } })
        .toArray()
      const known = new Set(ids(found))
      return {
        visible: ids(found.filter(({ erasing }) => erasing === undefined)),
        missing: conversationIds.filter((id) => !known.has(id)),
      }
    },

    async leadsIn(workspaceId, limit) {
      return ids(await leads.find({ workspaceId }, idOnly).limit(limit).toArray())
    },

    async removeRest(workspaceId, limit) {
      let removed = 0
      for (const collection of [suppressions, policyChanges, erasures, visitors, consoleSessions, signInLinks]) {
        const all = collection as unknown as Collection<{ _id: string; workspaceId: string }>
        const found = await all.find({ workspaceId }, idOnly).limit(limit).toArray()
        removed += (await all.deleteMany({ _id: { $in: ids(found) } })).deletedCount
      }
      return removed
    },

    async remove(deleted) {
      const filter = within(deleted)
      await visitors.deleteMany({ connectionId: { $in: await connectionsIn(deleted) } })
      if (filter.installations) await installations.deleteMany(filter.installations)
      if (filter.connections) await connections.deleteMany(filter.connections)
      if (filter.subscriptions) await leadSubscriptions.deleteMany(filter.subscriptions)
      if (filter.workspaces) await workspaces.deleteMany(filter.workspaces)
    },
  }
}
