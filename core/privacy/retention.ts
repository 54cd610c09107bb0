import type { Collection, Filter, WithId } from 'mongodb'
import { type Core, dateOf } from '../core.ts'
import { createLeases, type Leased, msUntil, whileHeld } from '../mongodb/leases.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { findIds, idsOf } from '../mongodb/with-id.ts'
import type { Session } from '../sessions/model.ts'
import { toSession } from '../sessions/session-store.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { retentionOf, type WorkspaceDocument } from '../workspaces/workspaces.ts'
import {
  dataOf,
  deliveryPart,
  documents,
  hiddenBy,
  hideData,
  type Part,
  partsOfSession,
  sessionsIn,
  showData,
} from './data-store.ts'
import { type DataKind, hiddenMs, leaseMs } from './model.ts'
import { beginRemoval, countOpenRemovals, type Removal, type RemovalList, removeParts } from './removals.ts'

// Finds what is older than a workspace allows. Held deliveries, audit entries and ended sessions are
// removed at once, because no call can use them meanwhile, and conversations and leads by `removals.ts`.
// Every query is answered by an index.

const sweepEveryMs = 3_600_000
/** Pause before the next sweep of a workspace with more old data. */
const moreAfterMs = 1_000
/** Pause before the next sweep of a workspace with `maxOpen` open removals. */
const fullAfterMs = 10_000
const maxOpen = 8
/** Maximum number of conversations or leads in one removal. */
const batch = 1_000
const reviewBatch = 100

type Days = ReturnType<typeof retentionOf>

const dayMs = 86_400_000

/** Returns the time before which data is removed. Returns undefined for 0 days, which mean no limit. */
const cutOffOf = (core: Core, days: number) => (days === 0 ? undefined : dateOf(core, -days * dayMs))

/** Time until the next review of old data that is kept for another reason. */
const postponedMs = dayMs

/** The place of a conversation in the order of last messages. */
type InboxPlace = NonNullable<WorkspaceDocument['sweepAfter']>

/** The next review is at the end of the period that begins at `reviewAt`, or at `postponedUntil`. */
interface NextReview {
  reviewAt?: Date
  postponedUntil?: Date
}

const never: NextReview = { reviewAt: new Date(8.64e15) }

const leasesOf = ({ db }: Core) =>
  createLeases(db.workspaces, { until: 'sweepAt', token: 'sweepToken', isFreeWithoutUntil: true })

/**
 * Begins the removal of old data in every workspace that is due: every hour, and when its policy has
 * changed. Returns the time until the next one is due.
 */
export async function sweepOldData(core: Core): Promise<number | undefined> {
  for (;;) {
    const times = { now: dateOf(core), until: dateOf(core, leaseMs) }
    const found = await leasesOf(core).take(times)
    if (!found) return msUntil(await leasesOf(core).nextAt(), core.now)
    await whileHeld(sweepWorkspace(core, found))
  }
}

async function sweepWorkspace(core: Core, { lease, document }: Leased<WorkspaceDocument>) {
  const { _id: workspaceId, sweepAfter } = document
  /** Throws `LeaseLost` if the workspace was changed or claimed again during the sweep. */
  const end = (pauseMs: number, after?: InboxPlace) =>
    leasesOf(core).write(lease, {
      $set: { sweepAt: dateOf(core, pauseMs), ...(after && { sweepAfter: after }) },
      ...(!after && { $unset: { sweepAfter: '' } }),
    })
  const days = retentionOf(core, document)
  if ((await countOpenRemovals(core, workspaceId)) >= maxOpen) return end(fullAfterMs, sweepAfter)
  const after = await sweepConversations(core, workspaceId, sweepAfter, days)
  const more = [
    after !== undefined,
    await sweepDeliveries(core, workspaceId, days),
    await sweepLeads(core, workspaceId, days),
  ]
  const emptyBefore = cutOffOf(core, days.emptySessions)
  const reviewBefore = emptyBefore ?? cutOffOf(core, days.conversations)
  if (reviewBefore) more.push(await reviewConversations(core, workspaceId, days, reviewBefore))
  if (emptyBefore) more.push(await reviewSessions(core, workspaceId, emptyBefore))
  return end(more.includes(true) ? moreAfterMs : sweepEveryMs, after)
}

/**
 * A conversation with a lead but no message has the period of those with messages, because its session has
 * the consent to the lead.
 */
const dueOf = (core: Core, facts: ConversationFacts[], days: Days) =>
  facts.filter(({ hasMessage, hasLead, lastActivityAt }) => {
    const cutOff = cutOffOf(core, hasMessage || hasLead ? days.conversations : days.emptySessions)
    return cutOff !== undefined && lastActivityAt <= cutOff
  })

const postponed = (core: Core) => ({ ...never, postponedUntil: dateOf(core, postponedMs) })

/** Returns whether there may be more to remove. */
async function begin(core: Core, workspaceId: string, kind: DataKind, ids: string[]) {
  if (ids.length > 0) await beginRemoval(core, { workspaceId, kind, ids })
  return ids.length === batch
}

async function sweepDeliveries(core: Core, workspaceId: string, days: Days) {
  const [heldBefore, auditBefore] = [cutOffOf(core, days.heldDeliveries), cutOffOf(core, days.audit)]
  const subscriptionIds = await findIds(core.db.leadSubscriptions, { workspaceId })
  const held = { destination: { $in: subscriptionIds }, status: 'held' as const }
  const parts = [
    ...(heldBefore ? [deliveryPart(core, { ...held, updatedAt: { $lte: heldBefore } }, 'held_deliveries')] : []),
    ...(auditBefore ? auditParts(core, workspaceId, subscriptionIds, auditBefore) : []),
  ]
  return (await removeParts(core, { items: [workspaceId], partsOf: () => parts })).length > 0
}

async function sweepLeads(core: Core, workspaceId: string, days: Days) {
  const before = cutOffOf(core, days.leads)
  if (!before) return false
  const old = { workspaceId, createdAt: { $lte: before }, ...notErasing }
  const oldest = { sort: { createdAt: 1, _id: 1 }, limit: batch } as const
  return begin(core, workspaceId, 'leads', await findIds(core.db.leads, old, oldest))
}

/**
 * Sweeps conversations whose last message is old, except those with a younger session. Returns where to
 * continue; undefined at the end.
 */
async function sweepConversations(core: Core, workspaceId: string, after: InboxPlace | undefined, days: Days) {
  const before = cutOffOf(core, days.conversations)
  const found = before ? await oldConversations(core, workspaceId, before, batch, after) : []
  const due = dueOf(core, await factsOf(core, conversationIdsOf(found)), days)
  await begin(core, workspaceId, 'conversations', conversationIdsOf(due))
  return found.length === batch ? found.at(-1) : undefined
}

/** Reviews conversations that may have no message. `sweepConversations` finds the others. */
async function reviewConversations(core: Core, workspaceId: string, days: Days, before: Date) {
  let more = false
  for (const connectionId of await findIds(core.db.connections, { workspaceId })) {
    const found = await toReview(core, core.db.conversations, { connectionId, ...notErasing }, before, batch)
    const facts = await factsOf(core, idsOf(found))
    const due = dueOf(core, facts, days)
    for (const { conversationId, hasMessage, lastActivityAt } of facts.filter((each) => !due.includes(each))) {
      if (hasMessage) await repairInbox(core, conversationId)
      const next = lastActivityAt > before ? { reviewAt: lastActivityAt } : postponed(core)
      await reviewLater(core, 'conversations', conversationId, hasMessage ? never : next)
    }
    await begin(core, workspaceId, 'conversations', conversationIdsOf(due))
    more ||= found.length === batch
  }
  return more
}

/** Removes ended sessions without a message from conversations that stay. */
async function reviewSessions(core: Core, workspaceId: string, cutOff: Date) {
  let more = false
  for (const publicSiteKey of await findIds(core.db.installations, { workspaceId })) {
    const found = await toReview(core, core.db.sessions, { publicSiteKey }, cutOff, reviewBatch)
    for (const [conversationId, theirs] of Map.groupBy(found.map(toSession), (session) => session.conversationId))
      await reviewSessionsOf(core, conversationId, theirs, cutOff)
    more ||= found.length === reviewBatch
  }
  return more
}

async function reviewSessionsOf(core: Core, conversationId: string, toReview: Session[], cutOff: Date) {
  const [facts] = await factsOf(core, [conversationId])
  const all = await sessionsIn(core, [conversationId])
  const writers = await writersIn(core, conversationId, all)
  for (const session of toReview) {
    const { sessionId, renewableUntil: expiry } = session
    // Another session that links the visitor to the conversation. Without one, the reviewed session stays.
    const heir = all.find(
      (other) => other.sessionId !== sessionId && (writers.has(other.sessionId) || isNewer(other, session)),
    )
    const remove = (lastSessionId?: string) =>
      removeParts(core, { items: [session], partsOf: () => partsOfSession(core, session, lastSessionId) })
    if (expiry > cutOff) await reviewLater(core, 'sessions', sessionId, { reviewAt: expiry })
    else if (!facts) await remove()
    else if (writers.get(sessionId) === 'message') await reviewLater(core, 'sessions', sessionId, never)
    // The newest session is removed with its conversation.
    else if (writers.has(sessionId) || !heir) await reviewLater(core, 'sessions', sessionId, postponed(core))
    else await remove(heir.sessionId)
  }
}

const conversationIdsOf = (conversations: { conversationId: string }[]) =>
  conversations.map(({ conversationId }) => conversationId)

function isNewer(one: Session, other: Session) {
  const [a, b] = [one.createdAt.getTime(), other.createdAt.getTime()]
  return a === b ? one.sessionId > other.sessionId : a > b
}

async function oldConversations(
  { db }: Core,
  workspaceId: string,
  before: Date,
  limit: number,
  after: InboxPlace | undefined,
) {
  const found = await db.conversations
    .find(
      {
        workspaceId,
        lastMessageAt: { $gte: after?.lastMessageAt ?? new Date(0), $lte: before },
        $or: after && [
          { lastMessageAt: { $gt: after.lastMessageAt } },
          { lastMessageAt: after.lastMessageAt, _id: { $gt: after.conversationId } },
        ],
        ...notErasing,
      },
      { projection: { lastMessageAt: 1 } },
    )
    .sort({ lastMessageAt: 1, _id: 1 })
    .limit(limit)
    .toArray()
  return found.map(({ _id, lastMessageAt }) => ({ conversationId: _id, lastMessageAt: lastMessageAt! }))
}

/** Returns documents whose `reviewAt` is due, then postponed ones. */
async function toReview<D extends NextReview>(
  { now }: Core,
  collection: Collection<D>,
  filter: object,
  before: Date,
  limit: number,
) {
  const due: WithId<D>[] = []
  for (const [field, at] of Object.entries({ reviewAt: before, postponedUntil: new Date(now()) })) {
    if (due.length === limit) break
    const found = collection.find({ ...filter, [field]: { $lte: at } } as Filter<D>).sort({ [field]: 1 })
    due.push(...(await found.limit(limit - due.length).toArray()))
  }
  return due
}

async function reviewLater({ db }: Core, kind: 'conversations' | 'sessions', _id: string, next: NextReview) {
  const reviewed = db[kind] as unknown as Collection<NextReview & { _id: string }>
  await reviewed.updateOne({ _id }, { $set: next, $unset: next.postponedUntil ? undefined : { postponedUntil: '' } })
}

function auditParts({ db }: Core, workspaceId: string, subscriptionIds: string[], before: Date): Part[] {
  const { leadSubscriptions, deliveries, erasures, policyChanges } = db
  const isOld = { $lte: before }
  const requested = { destination: { $in: subscriptionIds }, requestedAt: isOld }
  return [
    {
      kind: 'audit',
      async remove() {
        const old = { workspaceId, 'audit.at': isOld }
        return (await leadSubscriptions.updateMany(old, { $pull: { audit: { at: isOld } } })).modifiedCount
      },
    },
    documents(deliveries, requested, {
      kind: 'audit',
      act: (ids) =>
        deliveries.updateMany(
          { _id: { $in: ids }, requestedAt: isOld },
          { $unset: { requestedAt: '', 'attempts.$[].requestedBy': '' } },
        ),
    }),
    documents(erasures, { workspaceId, finishedAt: isOld }, { kind: 'audit' }),
    documents(policyChanges, { workspaceId, at: isOld }, { kind: 'audit' }),
  ]
}

/** Returns what is older than the stored policy allows. */
async function dueIdsOf(core: Core, kind: DataKind, { workspaceId, isDeletion }: Removal, ids: string[]) {
  const workspace = await core.db.workspaces.findOne({ _id: workspaceId }, { projection: { retention: 1 } })
  if (!workspace || isDeletion) return ids
  const days = retentionOf(core, workspace)
  if (kind === 'leads') {
    const cutOff = cutOffOf(core, days.leads)
    if (!cutOff) return []
    return findIds(core.db.leads, { _id: { $in: ids }, createdAt: { $lte: cutOff } })
  }
  return conversationIdsOf(dueOf(core, await factsOf(core, ids), days))
}

/**
 * The removal of conversations or leads. After every earlier call has ended, reads them again: what was
 * used meanwhile, or may stay now, is shown again. So no acknowledged message is lost.
 */
export const oldDataList = (kind: DataKind): RemovalList => ({
  hiddenMs,
  removesLate: true,

  async hide(core, { ids, lease }) {
    await hideData(core, kind, ids, lease.id)
    await wakeupsOf(core).stateChanged(...ids)
  },

  async check(core, removal) {
    const hidden = await hiddenBy(core, kind, removal.ids, removal.lease.id)
    const due = await dueIdsOf(core, kind, removal, hidden)
    const spared = [...new Set(hidden).difference(new Set(due))]
    if (kind === 'conversations') for (const id of spared) await repairInbox(core, id)
    // Before the decision is recorded, because this step is not repeated afterwards.
    await showData(core, kind, spared, removal.lease.id)
    await wakeupsOf(core).stateChanged(...spared)
    core.metrics.spared.inc(spared.length)
    return due
  },

  async next(core, removal) {
    const items = removal.stage === 'removed' ? removal.ids : await hiddenBy(core, kind, removal.ids, removal.lease.id)
    return { items, partsOf: (some) => dataOf[kind](core, some) }
  },
})

async function lastMessage({ db }: Core, conversationId: string) {
  const [found] = await db.events
    .find({ conversationId, message: { $exists: true } }, { projection: { occurredAt: 1, sequence: 1 } })
    .sort({ sequence: -1 })
    .limit(1)
    .toArray()
  return found
}

/** Reads the logs, the sessions and the leads. Skips conversations that do not exist. */
async function factsOf(core: Core, conversationIds: string[]) {
  const { conversations, events, sessions, leads } = core.db
  const theirs = { conversationId: { $in: conversationIds } }
  const [found, ends, ofThem, withLeads] = await Promise.all([
    conversations.find({ _id: { $in: conversationIds } }, { projection: { createdAt: 1 } }).toArray(),
    // In this order the database jumps in the index from one log's end to the next.
    events
      .aggregate<{ _id: string; occurredAt: Date; messageId: string | null }>([
        { $match: theirs },
        { $sort: { conversationId: -1, sequence: -1 } },
        {
          $group: {
            _id: '$conversationId',
            occurredAt: { $first: '$occurredAt' },
            messageId: { $first: '$message.messageId' },
          },
        },
      ])
      .toArray(),
    sessions.find(theirs, { projection: { conversationId: 1, grantExpiresAt: 1, renewableUntil: 1 } }).toArray(),
    leads.distinct('conversationId', theirs),
  ])
  const endOf = new Map(ends.map((end) => [end._id, end]))
  const expiries = Map.groupBy(ofThem, ({ conversationId }) => conversationId)
  return Promise.all(
    found.map(async ({ _id, createdAt }) => {
      const end = endOf.get(_id)
      const lastMessageAt = end?.messageId ? end.occurredAt : end && (await lastMessage(core, _id))?.occurredAt
      const times = (expiries.get(_id) ?? []).map((session) => session.renewableUntil.getTime())
      return {
        conversationId: _id,
        hasMessage: lastMessageAt !== undefined,
        hasLead: withLeads.includes(_id),
        // The latest of its start, its last message, and the ends of its sessions.
        lastActivityAt: new Date(Math.max(createdAt.getTime(), lastMessageAt?.getTime() ?? 0, ...times)),
      }
    }),
  )
}

type ConversationFacts = Awaited<ReturnType<typeof factsOf>>[number]

/** Repairs an inbox that lacks the last message of a conversation. */
async function repairInbox(core: Core, conversationId: string) {
  const message = await lastMessage(core, conversationId)
  if (!message) return
  const { occurredAt: lastMessageAt, sequence: lastSequence } = message
  await core.db.conversations.updateOne({ _id: conversationId }, { $max: { lastMessageAt, lastSequence } })
}

/** Returns what sessions wrote: `form` means a form but no message. Leaves out those that wrote nothing. */
async function writersIn(
  { db: { events, leads } }: Core,
  conversationId: string,
  among: Session[],
): Promise<Map<string, 'message' | 'form'>> {
  const ids = among.map(({ sessionId }) => sessionId)
  const [authors, forms] = await Promise.all([
    events.distinct('message.sessionId', { conversationId, 'message.sessionId': { $in: ids } }),
    leads.find({ conversationId }, { projection: { operationKey: 1 } }).toArray(),
  ])
  // The key of a form begins with a session id: for an identified session, the anonymous one before it.
  const submitters = new Set(forms.map(({ operationKey }) => operationKey?.split(' ')[0]))
  const submitted = among.filter(({ sessionId, operationSessionId }) =>
    [sessionId, operationSessionId].some((id) => id !== undefined && submitters.has(id)),
  )
  return new Map([
    ...submitted.map(({ sessionId }) => [sessionId, 'form'] as const),
    ...(authors as string[]).map((sessionId) => [sessionId, 'message'] as const),
  ])
}
