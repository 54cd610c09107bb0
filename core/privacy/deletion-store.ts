import type { Collection, Document } from 'mongodb'
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
  const { pictures, data } = collections

  /** Returns the objects that the deletion marks and removes, by collection. The deleted one is in the last. */
  function objectsIn({ kind, id, workspaceId }: Deleted) {
    const off = { deleted: true as const, status: 'disabled' as const }
    const inWorkspace = kind === 'workspace' ? { workspaceId } : undefined
    const itself = (of: DeletionKind) => (kind === of ? { _id: id } : undefined)
    const inConnection = kind === 'connection' ? { workspaceId, connectionId: id } : undefined
    const objects = [
      {
        kind: 'installation',
        collection: installations,
        filter: inWorkspace ?? inConnection ?? itself('installation'),
        mark: { $set: { deleted: true, enabled: false } },
      },
      {
        kind: 'connection',
        collection: connections,
        filter: inWorkspace ?? itself('connection'),
        mark: { $set: off, $inc: { statusVersion: 1 } },
      },
      {
        kind: 'subscription',
        collection: leadSubscriptions,
        filter: inWorkspace ?? itself('subscription'),
        mark: {
          $set: { ...off, disabledReason: 'operator', automatic: false },
          ...(kind === 'subscription' && { $unset: { place: '' } }),
        },
      },
      {
        kind: 'workspace',
        collection: workspaces,
        filter: itself('workspace'),
        mark: { $set: { deleted: true } },
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
    const rest = [suppressions, policyChanges, erasures, visitors, consoleSessions, signInLinks, feedEntries, pictures]
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
      for (const { collection, filter, mark } of objectsIn(deleted))
        marked += (await collection.updateMany({ ...filter, deleted: { $exists: false } }, mark)).modifiedCount
      return marked > 0
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
