import type { Collection, Filter } from 'mongodb'
import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import type { FeedEntryDocument } from '../feed/model.ts'
import type { LeadDocument } from '../leads/model.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { entriesOf } from '../search/search-entry-store.ts'
import type { Session } from '../sessions/model.ts'
import { type SessionDocument, toSession } from '../sessions/session-store.ts'
import { createKeptDataStore } from './kept-data-store.ts'
import type { DataKind, VisitorTraces } from './model.ts'
import { atOnce, documents, idOnly, ids, type Part } from './parts-store.ts'
import type { RetentionStore } from './retention-store.ts'
import type { PrivacyCollections } from './visitor-data-store.ts'
import { filesOf } from './visitor-trace-store.ts'

export type DataStore = ReturnType<typeof createDataStore>

/**
 * Hides data, and lists what belongs to conversations, leads, sessions and visitors. A removal removes
 * the parts of a list in their order.
 */
export function createDataStore(
  collections: PrivacyCollections & {
    consents: { keepLatest(session: Session, removedIds: string[]): Promise<void> }
    files: Pick<ScreenshotStore, 'delete'>
    retention: Pick<RetentionStore, 'reviewAll'>
  },
) {
  const { sessions, visitors, subjects, conversations, events, typing, idempotency, searchEntries, feedEntries } =
    collections
  const { commands, leads, deliveries, policyChanges, files, retention } = collections
  const kept = createKeptDataStore(collections)
  const hideable = { conversations, leads } as unknown as Record<
    DataKind,
    Collection<{ _id: string; workspaceId: string; erasing?: true | string }>
  >

  /** The places of the entries stay, because the numbers of a feed have no gaps. */
  const feedPart = (filter: Filter<FeedEntryDocument>) =>
    atOnce(() =>
      feedEntries.updateMany(filter, {
        $unset: { source: '', conversationId: '', sequence: '', leadId: '', delivery: '', workflowId: '' },
      }),
    )

  const logParts = (conversationIds: string[]): Part[] => [
    // Deliveries of the conversation's events, which have texts.
    deliveryPart({ conversationId: { $in: conversationIds } }),
    documents(
      events,
      { conversationId: { $in: conversationIds } },
      {
        kind: 'events',
        fields: { conversationId: 1 },
        act: (found) => events.deleteMany({ _id: { $in: found.map(({ _id }) => _id) } }),
      },
    ),
    documents(searchEntries, { $or: entriesOf(conversationIds) }, { kind: 'search_entries' }),
    feedPart({ conversationId: { $in: conversationIds } }),
  ]

  const conversationPart = (conversationIds: string[]) =>
    documents(
      conversations,
      { _id: { $in: conversationIds } },
      {
        kind: 'conversations',
        async act(found) {
          await subjects.deleteMany({ conversationId: { $in: ids(found) } })
          await conversations.deleteMany({ _id: { $in: ids(found) } })
        },
      },
    )

  /** Removes what belongs to sessions, and the references to them. */
  async function removeTracesOf(sessionIds: string[], visitorIds: string[]) {
    for (const fileId of await filesOf(commands, sessionIds)) await files.delete(fileId)
    await commands.deleteMany({ sessionId: { $in: sessionIds } })
    await idempotency.deleteMany({ sessionIds: { $in: sessionIds } })
    // The previous session in the same browser stays if it belongs to another person.
    await sessions.updateMany(
      { visitorId: { $in: visitorIds }, 'successor.sessionId': { $in: sessionIds } },
      { $unset: { successor: '' } },
    )
    await policyChanges.updateMany({ target: { $in: sessionIds } }, { $unset: { target: '' } })
    await searchEntries.deleteMany({ _id: { $in: sessionIds } })
  }

  const sessionPart = (filter: Filter<SessionDocument>) =>
    documents(sessions, filter, {
      kind: 'sessions',
      fields: { visitorId: 1 },
      async act(found) {
        await removeTracesOf(ids(found), [...new Set(found.map(({ visitorId }) => visitorId))])
        await sessions.deleteMany({ _id: { $in: ids(found) } })
        // The search index may have written an entry again while the session was stored.
        await searchEntries.deleteMany({ _id: { $in: ids(found) } })
      },
    })

  const deliveryPart = (filter: Filter<DeliveryDocument>, kind = 'deliveries') =>
    documents(deliveries, filter, {
      kind,
      fields: { subscriptionId: 1, 'attempts.attemptId': 1 },
      async act(found) {
        await kept.removeAttemptReferences(found)
        // Check the filter again, because a held delivery may have been released after it was found.
        await deliveries.deleteMany({ $and: [{ _id: { $in: ids(found) } }, filter] })
      },
    })

  const leadPart = (filter: Filter<LeadDocument>) =>
    documents(leads, filter, {
      kind: 'leads',
      fields: { workspaceId: 1, conversationId: 1 },
      async act(found) {
        // A conversation with a form may have been kept only for its lead. Make its review due before
        // the removal, because the process may die. Make it due again afterwards, because a sweep may
        // have run during the removal.
        const freed = [...new Set(found.flatMap(({ conversationId }) => conversationId ?? []))]
        await retention.reviewAll(found[0]!.workspaceId, freed)
        await leads.deleteMany({ _id: { $in: ids(found) } })
        await searchEntries.deleteMany({ _id: { $in: ids(found) } })
        await retention.reviewAll(found[0]!.workspaceId, freed)
      },
    })

  const leadParts = (leadIds: string[]): Part[] => [
    deliveryPart({ leadId: { $in: leadIds } }),
    leadPart({ _id: { $in: leadIds } }),
    // An entry may have been written after its lead was removed.
    atOnce(() => searchEntries.deleteMany({ _id: { $in: leadIds } })),
    feedPart({ leadId: { $in: leadIds } }),
  ]

  /** Removes everything that belongs to conversations. Their leads stay. */
  function conversationParts(conversationIds: string[]): Part[] {
    const theirs = { conversationId: { $in: conversationIds } }
    const keep = atOnce(async () => {
      const found = (await sessions.find(theirs).toArray()).map(toSession)
      await kept.detachLeads(found)
      await kept.keepLinks(found)
    })
    return [...logParts(conversationIds), keep, sessionPart(theirs), conversationPart(conversationIds)]
  }

  return {
    /** Hides the conversations or leads, except those that another removal has hidden. */
    async hide(kind: DataKind, wanted: string[], removalId: string): Promise<void> {
      const visible = { _id: { $in: wanted }, ...notErasing }
      await hideable[kind].updateMany(visible, { $set: { erasing: removalId } })
    },

    /** Returns the ids of the conversations or leads that this removal has hidden. */
    hiddenBy: async (kind: DataKind, wanted: string[], removalId: string): Promise<string[]> =>
      ids(await hideable[kind].find({ _id: { $in: wanted }, erasing: removalId }, idOnly).toArray()),

    /** Hides conversations and leads of a visitor, also those that a removal of old data has hidden. */
    async hideFromAll({ conversationIds, leadIds }: Pick<VisitorTraces, 'conversationIds' | 'leadIds'>): Promise<void> {
      await conversations.updateMany({ _id: { $in: conversationIds } }, { $set: { erasing: true } })
      await leads.updateMany({ _id: { $in: leadIds } }, { $set: { erasing: true } })
    },

    async show(kind: DataKind, wanted: string[], removalId: string): Promise<void> {
      const hidden = { _id: { $in: wanted }, erasing: removalId }
      await hideable[kind].updateMany(hidden, { $unset: { erasing: '' } })
    },

    /** Returns those of these conversations and leads that are hidden, with their workspace. */
    async hiddenOf(wanted: string[]): Promise<{ workspaceId: string; id: string }[]> {
      const filter = { _id: { $in: wanted }, erasing: { $exists: true } }
      const fields = { projection: { workspaceId: 1 } }
      const found = await Promise.all(
        Object.values(hideable).map((collection) => collection.find(filter, fields).toArray()),
      )
      return found.flat().map(({ _id, workspaceId }) => ({ workspaceId, id: _id }))
    },

    epochsOf: (conversationIds: string[]): Promise<string[]> =>
      conversations.distinct('epoch', { _id: { $in: conversationIds } }),

    /** Prevents further uploads, so that all files are found. */
    async stopUploads(sessionIds: string[]): Promise<void> {
      await commands.updateMany({ sessionId: { $in: sessionIds } }, { $set: { state: 'cancelled' } })
    },

    /** Parts of conversations or leads. */
    partsOf: { conversations: conversationParts, leads: leadParts } satisfies Record<DataKind, unknown>,
    sessionPart,
    deliveryPart,
    leadPart,

    /**
     * Parts of a session whose conversation stays. `lastSessionId` is another session of the
     * conversation; undefined if the conversation is not stored.
     */
    partsOfSession: (session: Session, lastSessionId: string | undefined): Part[] => [
      atOnce(async () => {
        await kept.keepLinks([session])
        if (lastSessionId !== undefined) await kept.detachSession(session, lastSessionId)
      }),
      sessionPart({ _id: session.sessionId }),
    ],

    /** Parts of a visitor whose sessions have ended. Also finds data of sessions that are removed. */
    partsOfVisitor({ sessionIds, conversationIds, leadIds, visitorIds, fileIds }: VisitorTraces): Part[] {
      const theirs = { _id: { $in: visitorIds } }
      return [
        ...leadParts(leadIds),
        atOnce(() => typing.deleteMany({ conversationId: { $in: conversationIds } })),
        ...logParts(conversationIds),
        conversationPart(conversationIds),
        atOnce(async () => {
          // Keeps the bans, because a banned visitor who returns must still be banned. Without its
          // reason, a ban has keyed hashes only.
          await visitors.updateMany({ ...theirs, banReason: { $exists: true } }, { $unset: { banReason: '' } })
          await visitors.deleteMany({ ...theirs, bannedAt: { $exists: false } })
          for (const fileId of fileIds) await files.delete(fileId)
          await removeTracesOf(sessionIds, visitorIds)
        }),
        sessionPart({ _id: { $in: sessionIds } }),
      ]
    },

    forgetErasure: kept.forgetErasure,
  }
}
