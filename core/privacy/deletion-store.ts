import type { Collection, Document } from 'mongodb'
import { notErasing } from '../mongodb/not-erasing.ts'
import { logoOf } from '../pictures/model.ts'
import type { Session } from '../sessions/model.ts'
import { toSession } from '../sessions/session-store.ts'
import type { DataStore } from './data-store.ts'
import type { DeletionKind } from './model.ts'
import { atOnce, documents, idOnly, ids, type Part } from './parts-store.ts'
import type { PrivacyCollections } from './visitor-data-store.ts'

export interface Deleted {
  kind: DeletionKind
  id: string
  workspaceId: string
}

interface ObjectDocument extends Document {
  _id: string
}

export type DeletionStore = ReturnType<typeof createDeletionStore>

/** Marks workspaces, connections, installations and lead subscriptions, and lists what belongs to them. */
export function createDeletionStore(
  collections: PrivacyCollections & { data: Pick<DataStore, 'deliveryPart' | 'leadPart' | 'sessionPart'> },
) {
  const { workspaces, connections, installations, leadSubscriptions, suppressions, policyChanges } = collections
  const { sessions, conversations, erasures, visitors, consoleSessions, signInLinks, feedEntries } = collections
  const { pictures, tokens, teams, passkeys, data } = collections

  /**
   * Returns the objects that the deletion marks and removes, by collection, and the fields that the mark
   * sets. The deleted one is in the last.
   */
  function objectsIn({ kind, id, workspaceId }: Deleted) {
    const inWorkspace = kind === 'workspace' ? { workspaceId } : undefined
    const itself = (of: DeletionKind) => (kind === of ? { _id: id } : undefined)
    const inConnection = kind === 'connection' ? { workspaceId, connectionId: id } : undefined
    const objects = [
      {
        kind: 'installation',
        collection: installations,
        filter: inWorkspace ?? inConnection ?? itself('installation'),
        off: { enabled: false },
      },
      {
        kind: 'connection',
        collection: connections,
        filter: inWorkspace ?? itself('connection'),
        off: { status: 'disabled' },
        more: [{ $set: { statusVersion: { $add: ['$statusVersion', 1] } } }],
      },
      {
        kind: 'subscription',
        collection: leadSubscriptions,
        filter: inWorkspace ?? itself('subscription'),
        off: { status: 'disabled', disabledReason: 'operator', automatic: false },
        more: kind === 'subscription' ? [{ $unset: 'place' }] : [],
      },
      {
        kind: 'workspace',
        collection: workspaces,
        filter: itself('workspace'),
        off: {},
      },
    ]
    return objects.flatMap(({ collection, filter, ...rest }) =>
      filter ? [{ ...rest, filter, collection: collection as unknown as Collection<ObjectDocument> }] : [],
    )
  }

  /** Returns the ids of the objects of these kinds. */
  async function idsIn(deleted: Deleted, kinds: DeletionKind[]): Promise<string[]> {
    const found = objectsIn(deleted)
      .filter(({ kind }) => (kinds as string[]).includes(kind))
      .map(({ collection, filter }) => collection.find(filter, idOnly).toArray())
    return ids((await Promise.all(found)).flat())
  }

  /** Returns the parts of a workspace other than its conversations and objects. */
  function partsOfWorkspace(workspaceId: string): Part[] {
    const signIns = [consoleSessions, signInLinks, teams, passkeys]
    const rest = [suppressions, policyChanges, erasures, visitors, ...signIns, feedEntries, pictures, tokens]
    return [
      data.deliveryPart({ workspaceId }),
      data.leadPart({ workspaceId }),
      ...rest.map((collection) => documents(collection as never, { workspaceId } as never)),
    ]
  }

  return {
    idsIn,

    /** Returns the workspace of an object, even if its deletion has begun. */
    async workspaceOf(kind: DeletionKind, id: string): Promise<string | undefined> {
      const [object] = objectsIn({ kind, id, workspaceId: id }).filter((each) => each.kind === kind)
      const found = await object!.collection.findOne({ _id: id }, { projection: { workspaceId: 1 } })
      return kind === 'workspace' ? found?._id : found?.workspaceId
    },

    /**
     * Marks the object and the objects in it as deleted. Queries then skip them. Returns whether this
     * call marked at least one object.
     */
    async mark(deleted: Deleted): Promise<boolean> {
      let marked = 0
      for (const { collection, filter, off, more = [] } of objectsIn(deleted)) {
        const before = Object.fromEntries(Object.keys(off).map((field) => [field, `$${field}`]))
        const set = { $set: { ...off, deleted: true, ...(deleted.kind === 'workspace' && { before }) } }
        const update = [set, ...more]
        marked += (await collection.updateMany({ ...filter, deleted: { $exists: false } }, update)).modifiedCount
      }
      return marked > 0
    },

    /** Undoes the marks of a workspace. Objects in it that were deleted before the workspace stay deleted. */
    async restore(deleted: Deleted): Promise<void> {
      for (const { collection, filter, off } of objectsIn(deleted))
        await collection.updateMany({ ...filter, before: { $exists: true } }, [
          { $unset: Object.keys(off).concat('deleted') },
          { $replaceWith: { $mergeObjects: ['$$ROOT', '$before'] } },
          { $unset: 'before' },
        ])
    },

    /** Returns visible conversations of the connections. */
    visibleConversations: async (connectionIds: string[], limit: number) => {
      const visible = { connectionId: { $in: connectionIds }, ...notErasing }
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
      const connectionIds = await idsIn(deleted, ['connection'])
      const siteKeys = await idsIn(deleted, ['installation'])
      return [
        ...(kind === 'subscription' ? [data.deliveryPart({ subscriptionId: id })] : []),
        // Sessions whose conversation was never stored.
        data.sessionPart({ publicSiteKey: { $in: siteKeys } }),
        ...(kind === 'workspace' ? partsOfWorkspace(id) : []),
        documents(pictures, { workspaceId: deleted.workspaceId, owner: { $in: siteKeys.map(logoOf) } }),
        documents(visitors, { connectionId: { $in: connectionIds } }),
        atOnce(async () => {
          for (const { collection, filter } of objectsIn(deleted)) await collection.deleteMany(filter)
        }),
      ]
    },
  }
}
