import type { Collection, Document, Filter, WithId } from 'mongodb'
import { screenshotStoreOf } from '../commands/screenshots.ts'
import { keepLatestConsent } from '../consents/consents.ts'
import type { Core } from '../core.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import type { FeedEntryDocument } from '../feed/model.ts'
import type { LeadDocument } from '../leads/model.ts'
import { newToken } from '../mongodb/leases.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { findIds, idOnly } from '../mongodb/with-id.ts'
import { entriesOf } from '../search/search-entry-store.ts'
import type { Session } from '../sessions/model.ts'
import { type SessionDocument, toSession } from '../sessions/session-store.ts'
import type { DataKind, VisitorTraces } from './model.ts'
import { filesOf } from './visitor-traces.ts'

/** Documents that are removed with their owner. */
export interface Part {
  /** Kind in the metric of removed data. */
  kind?: string | undefined
  /** Removes at most `limit` documents. Returns how many it found; 0 when none is left. Can be repeated. */
  remove(limit: number): Promise<number>
}

/** A part with a bounded number of documents, or of references. */
export const atOnce = (remove: () => Promise<unknown>): Part => ({
  async remove() {
    await remove()
    return 0
  },
})

/** A part with the documents that match. `act` removes them; by default, they are deleted. */
export const documents = <D extends Document>(
  collection: Collection<D>,
  filter: Filter<D>,
  {
    kind,
    fields,
    act,
  }: { kind?: string; fields?: Document; act?: (ids: string[], found: WithId<D>[]) => Promise<unknown> } = {},
): Part => ({
  kind,
  async remove(limit) {
    const options = { projection: fields ?? idOnly.projection }
    const found = await collection.find(filter, options).limit(limit).toArray()
    const ids = found.map(({ _id }) => _id) as unknown[] as string[]
    const theirs = { _id: { $in: ids } } as Filter<D>
    if (found.length > 0) await (act ? act(ids, found) : collection.deleteMany(theirs))
    return found.length
  },
})

// Hides data, and lists what belongs to conversations, leads, sessions and visitors. The parts of a list
// are removed in their order.

const hideable = ({ db: { conversations, leads } }: Core) =>
  ({ conversations, leads }) as unknown as Record<
    DataKind,
    Collection<{ _id: string; workspaceId: string; erasing?: true | string }>
  >

/** Hides data, except what another removal has hidden. */
export async function hideData(core: Core, kind: DataKind, wanted: string[], removalId: string) {
  await hideable(core)[kind].updateMany({ _id: { $in: wanted }, ...notErasing }, { $set: { erasing: removalId } })
}

export const hiddenBy = (core: Core, kind: DataKind, wanted: string[], removalId: string): Promise<string[]> =>
  findIds(hideable(core)[kind], { _id: { $in: wanted }, erasing: removalId })

/** Hides data, also what a removal of old data has hidden. */
export async function hideFromAll(
  { db }: Core,
  { conversationIds, leadIds }: Pick<VisitorTraces, 'conversationIds' | 'leadIds'>,
) {
  await db.conversations.updateMany({ _id: { $in: conversationIds } }, { $set: { erasing: true } })
  await db.leads.updateMany({ _id: { $in: leadIds } }, { $set: { erasing: true } })
}

export async function showData(core: Core, kind: DataKind, wanted: string[], removalId: string) {
  await hideable(core)[kind].updateMany({ _id: { $in: wanted }, erasing: removalId }, { $unset: { erasing: '' } })
}

/** Returns what is hidden, with its workspace. */
export async function hiddenOf(core: Core, wanted: string[]): Promise<{ _id: string; workspaceId: string }[]> {
  const filter = { _id: { $in: wanted }, erasing: { $exists: true } }
  const fields = { projection: { workspaceId: 1 } }
  const found = await Promise.all(
    Object.values(hideable(core)).map((collection) => collection.find(filter, fields).toArray()),
  )
  return found.flat()
}

/** The places stay, because the numbers of a feed have no gaps. */
const feedPart = ({ db }: Core, filter: Filter<FeedEntryDocument>) =>
  atOnce(() =>
    db.feedEntries.updateMany(filter, {
      $unset: { source: '', conversationId: '', sequence: '', leadId: '', delivery: '', workflowId: '' },
    }),
  )

const logParts = (core: Core, conversationIds: string[]) => [
  // Their bodies have texts of the conversation.
  deliveryPart(core, { conversationId: { $in: conversationIds } }),
  documents(core.db.events, { conversationId: { $in: conversationIds } }, { kind: 'events' }),
  documents(core.db.searchEntries, { $or: entriesOf(conversationIds) }, { kind: 'search_entries' }),
  feedPart(core, { conversationId: { $in: conversationIds } }),
]

const conversationPart = ({ db: { conversations, subjects } }: Core, conversationIds: string[]) =>
  documents(
    conversations,
    { _id: { $in: conversationIds } },
    {
      kind: 'conversations',
      async act(ids) {
        await subjects.deleteMany({ conversationId: { $in: ids } })
        await conversations.deleteMany({ _id: { $in: ids } })
      },
    },
  )

async function removeTracesOf(core: Core, sessionIds: string[], visitorIds: string[]) {
  const { commands, idempotency, sessions, policyChanges, searchEntries } = core.db
  for (const fileId of await filesOf(core, sessionIds)) await screenshotStoreOf(core).delete(fileId)
  await commands.deleteMany({ sessionId: { $in: sessionIds } })
  await idempotency.deleteMany({ sessionIds: { $in: sessionIds } })
  // The previous session in the same browser stays if it is another person's.
  await sessions.updateMany(
    { visitorId: { $in: visitorIds }, 'successor.sessionId': { $in: sessionIds } },
    { $unset: { successor: '' } },
  )
  await policyChanges.updateMany({ target: { $in: sessionIds } }, { $unset: { target: '' } })
  await searchEntries.deleteMany({ _id: { $in: sessionIds } })
}

export const sessionPart = (core: Core, filter: Filter<SessionDocument>): Part =>
  documents(core.db.sessions, filter, {
    kind: 'sessions',
    fields: { visitorId: 1 },
    async act(ids, found) {
      await removeTracesOf(core, ids, [...new Set(found.map(({ visitorId }) => visitorId))])
      await core.db.sessions.deleteMany({ _id: { $in: ids } })
      // The search index may have written the entry again while the session was stored.
      await core.db.searchEntries.deleteMany({ _id: { $in: ids } })
    },
  })

export const deliveryPart = (core: Core, filter: Filter<DeliveryDocument>, kind = 'deliveries'): Part =>
  documents(core.db.deliveries, filter, {
    kind,
    fields: { subscriptionId: 1, 'attempts.attemptId': 1 },
    async act(ids, found) {
      await removeAttemptReferences(core, found)
      // A held delivery may have been released after it was found.
      await core.db.deliveries.deleteMany({ $and: [{ _id: { $in: ids } }, filter] })
    },
  })

export const leadPart = (core: Core, filter: Filter<LeadDocument>): Part =>
  documents(core.db.leads, filter, {
    kind: 'leads',
    fields: { workspaceId: 1, conversationId: 1 },
    async act(ids, found) {
      // A conversation may have been kept only for its lead. Its review is due before the removal, because
      // the process may die, and again afterwards, because a sweep may have run meanwhile.
      const freed = [...new Set(found.flatMap(({ conversationId }) => conversationId ?? []))]
      await reviewAll(core, found[0]!.workspaceId, freed)
      await core.db.leads.deleteMany({ _id: { $in: ids } })
      await core.db.searchEntries.deleteMany({ _id: { $in: ids } })
      await reviewAll(core, found[0]!.workspaceId, freed)
    },
  })

/** Makes conversations, their sessions and their workspace due for a review. */
async function reviewAll({ db }: Core, workspaceId: string, conversationIds: string[]) {
  if (conversationIds.length === 0) return
  const due = { $set: { reviewAt: new Date(0) }, $unset: { postponedUntil: '' as const } }
  await db.conversations.updateMany({ _id: { $in: conversationIds } }, due)
  await db.sessions.updateMany({ conversationId: { $in: conversationIds } }, due)
  // A sweep in progress loses its lease, so that it does not overwrite `sweepAt`.
  await db.workspaces.updateOne({ _id: workspaceId }, { $set: { sweepAt: new Date(0), sweepToken: newToken() } })
}

export const sessionsIn = async ({ db }: Core, conversationIds: string[]): Promise<Session[]> =>
  (await db.sessions.find({ conversationId: { $in: conversationIds } }).toArray()).map(toSession)

/** The leads of conversations stay. */
export const dataOf = {
  conversations(core, conversationIds) {
    const theirs = { conversationId: { $in: conversationIds } }
    const keep = atOnce(async () => {
      const found = await sessionsIn(core, conversationIds)
      await detachLeads(core, found)
      await keepLinks(core, found)
    })
    return [
      ...logParts(core, conversationIds),
      keep,
      sessionPart(core, theirs),
      conversationPart(core, conversationIds),
    ]
  },
  leads: (core, leadIds) => [
    deliveryPart(core, { leadId: { $in: leadIds } }),
    leadPart(core, { _id: { $in: leadIds } }),
    // The entry may have been written after the lead was removed.
    atOnce(() => core.db.searchEntries.deleteMany({ _id: { $in: leadIds } })),
    feedPart(core, { leadId: { $in: leadIds } }),
  ],
} satisfies Record<DataKind, (core: Core, ids: string[]) => Part[]>

/** Parts of a session whose conversation stays, with `lastSessionId`, or is not stored. */
export const partsOfSession = (core: Core, session: Session, lastSessionId: string | undefined): Part[] => [
  atOnce(async () => {
    await keepLinks(core, [session])
    if (lastSessionId !== undefined) await detachSession(core, session, lastSessionId)
  }),
  sessionPart(core, { _id: session.sessionId }),
]

/** Parts of a visitor whose sessions have ended, also of removed sessions. */
export function partsOfVisitor(
  core: Core,
  { sessionIds, conversationIds, leadIds, visitorIds, fileIds }: VisitorTraces,
): Part[] {
  const { typing, visitors } = core.db
  const theirs = { _id: { $in: visitorIds } }
  return [
    ...dataOf.leads(core, leadIds),
    atOnce(() => typing.deleteMany({ conversationId: { $in: conversationIds } })),
    ...logParts(core, conversationIds),
    conversationPart(core, conversationIds),
    atOnce(async () => {
      // A banned visitor who returns must still be banned. Without its reason, a ban has only keyed hashes.
      await visitors.updateMany({ ...theirs, banReason: { $exists: true } }, { $unset: { banReason: '' } })
      await visitors.deleteMany({ ...theirs, bannedAt: { $exists: false } })
      for (const fileId of fileIds) await screenshotStoreOf(core).delete(fileId)
      await removeTracesOf(core, sessionIds, visitorIds)
    }),
    sessionPart(core, { _id: { $in: sessionIds } }),
  ]
}

// What stays when sessions, conversations, deliveries or visitors are removed:

/**
 * Moves the latest decision on consent to another session. Stores a verified visitor's id in the anonymous
 * sessions of the browser, so that an erasure finds them.
 */
async function keepLinks(core: Core, removed: Session[]) {
  const sessionIds = removed.map(({ sessionId }) => sessionId)
  for (const session of removed) {
    await keepLatestConsent(core, session, sessionIds)
    const { sessionId, visitorId, identity } = session
    if (!identity) continue
    await core.db.sessions.updateMany(
      { visitorId, identity: { $exists: false }, _id: { $ne: sessionId } },
      { $addToSet: { linkedSubjectIds: identity.subjectId } },
    )
  }
}

/** Stores the visitors in the leads of removed conversations, so that an erasure finds them. */
async function detachLeads({ db: { leads } }: Core, removed: Session[]) {
  const conversationIds = removed.map(({ conversationId }) => conversationId)
  const kept = await leads.distinct('conversationId', { conversationId: { $in: conversationIds } })
  for (const conversationId of kept as string[]) {
    const theirs = removed.filter((session) => session.conversationId === conversationId)
    const visitorIds = [...new Set(theirs.map(({ identity, visitorId }) => identity?.subjectId ?? visitorId))]
    // The key has the id of a session. No form can be repeated after its conversation was removed.
    const references = { conversationId: '', sessionId: '', operationKey: '', inputHash: '' } as const
    await leads.updateMany({ conversationId }, { $set: { visitorIds }, $unset: references })
  }
}

async function removeAttemptReferences(
  { db: { leadSubscriptions } }: Core,
  found: Pick<DeliveryDocument, 'subscriptionId' | 'attempts'>[],
) {
  const attemptIds = found.flatMap(({ attempts }) => attempts.map(({ attemptId }) => attemptId))
  await leadSubscriptions.updateMany(
    { _id: { $in: [...new Set(found.map(({ subscriptionId }) => subscriptionId))] } },
    { $pull: { notFound: { $in: attemptIds } }, $unset: { 'audit.$[entry].attemptId': '' } },
    { arrayFilters: [{ 'entry.attemptId': { $in: attemptIds } }] },
  )
}

/**
 * Removes a session from its conversation, where `lastSessionId` takes its place. Its events except
 * messages become transient: their sweep removes them, but never the end of the log.
 */
async function detachSession(
  { db: { conversations, events } }: Core,
  { sessionId, conversationId }: Session,
  lastSessionId: string,
) {
  await conversations.updateOne(
    { _id: conversationId, 'lastSession.sessionId': sessionId },
    { $set: { 'lastSession.sessionId': lastSessionId } },
  )
  await events.updateMany(
    { conversationId, sessionId, message: { $exists: false } },
    {
      $set: { transient: true, removableAt: new Date(0) },
      // This event may stay as the end of the log.
      $unset: { sessionId: '', operationKey: '', inputHash: '', data: '' },
    },
  )
}

/** Removes the id of an erasure from what began during it and was skipped. */
export async function forgetErasure({ db: { sessions, subjects } }: Core, erasureId: string, visitorIds: string[]) {
  const theirs = { $in: visitorIds }
  for (const field of ['afterErasures', 'joinedAfterErasures'])
    for (const visitor of ['visitorId', 'identity.subjectId'])
      await sessions.updateMany({ [visitor]: theirs, [field]: erasureId }, { $pull: { [field]: erasureId } })
  await subjects.updateMany({ _id: theirs }, { $pull: { afterErasures: erasureId } })
}
