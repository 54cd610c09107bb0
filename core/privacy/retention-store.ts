import type { Collection, Filter, Sort, WithId } from 'mongodb'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { LeadDocument } from '../leads/lead-store.ts'
import type { Session } from '../visitors/model.ts'
import { type SessionDocument, toSession } from '../visitors/session-store.ts'
import type { Retention } from '../workspaces/model.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from '../workspaces/workspace-store.ts'

/** A workspace whose data is being swept. A core with an outdated token cannot end the sweep. */
export interface Sweep {
  workspaceId: string
  retention?: Retention
  token: number
  /**
   * Position at which the search for old conversations continues. Absent if the search starts from
   * the beginning.
   */
  after?: InboxPlace
}

/** Position of a conversation in the list that is sorted by last message. */
export interface InboxPlace {
  lastMessageAt: Date
  conversationId: string
}

interface ReviewTimes {
  before: Date
  now: Date
}

type NextReview = { periodBeginsAt: Date } | { postponedUntil: Date } | 'never'

/** Finds data that may be older than allowed. Every query is answered by an index. */
export interface RetentionStore {
  /** Leases the workspace whose sweep is due first; undefined if none is due. */
  claimSweep(now: Date, until: Date): Promise<Sweep | undefined>
  /**
   * Ends the sweep, and makes the next one due at `nextAt`. Changes nothing if the workspace was
   * changed or claimed again during the sweep.
   */
  endSweep(sweep: Sweep, nextAt: Date, after: InboxPlace | undefined): Promise<void>
  /** Returns the periods of a workspace; undefined if it does not exist. */
  periodsOf(workspaceId: string): Promise<{ retention?: Retention } | undefined>
  connectionIds(workspaceId: string): Promise<string[]>
  siteKeys(workspaceId: string): Promise<string[]>
  /**
   * Returns conversations whose last message in the inbox is not later than `before`, oldest first.
   */
  oldConversations(
    workspaceId: string,
    before: Date,
    limit: number,
    after: InboxPlace | undefined,
  ): Promise<InboxPlace[]>
  oldLeads(workspaceId: string, before: Date, limit: number): Promise<string[]>
  /** Returns those of the leads that were captured at this time or earlier. */
  leadsBefore(leadIds: string[], before: Date): Promise<string[]>
  /**
   * Returns conversations whose `reviewAt` is not later than `before`, then postponed conversations
   * that are due at `now`.
   */
  conversationsToReview(connectionId: string, times: ReviewTimes, limit: number): Promise<string[]>
  sessionsToReview(publicSiteKey: string, times: ReviewTimes, limit: number): Promise<Session[]>
  /**
   * Sets the next review of a conversation or session: at the end of the period that begins at
   * `periodBeginsAt`, at `postponedUntil`, or never.
   */
  reviewConversation(conversationId: string, next: NextReview): Promise<void>
  reviewSession(sessionId: string, next: NextReview): Promise<void>
  conversationsOfLeads(leadIds: string[]): Promise<string[]>
  /** Makes conversations due for a review, with their sessions and their workspace. */
  reviewAll(workspaceId: string, conversationIds: string[], now: Date): Promise<void>
}

/** Value of `reviewAt` if no further review is needed. */
const never = new Date(8.64e15)

interface RetentionCollections {
  workspaces: Collection<WorkspaceDocument>
  connections: Collection<ConnectionDocument>
  installations: Collection<InstallationDocument>
  conversations: Collection<ConversationDocument>
  sessions: Collection<SessionDocument>
  leads: Collection<LeadDocument>
}

const orderOf = (condition: object): Sort => Object.fromEntries(Object.keys(condition).map((name) => [name, 1]))

const idOnly = { projection: { _id: 1 } } as const
const notErasing = { erasing: { $exists: false } } as const

export function createRetentionStore(collections: RetentionCollections): RetentionStore {
  const { workspaces, connections, installations, conversations, sessions, leads } = collections

  /**
   * Returns documents whose `reviewAt` is due, then documents of earlier versions, which have no
   * `reviewAt`, then postponed documents.
   */
  async function toReview<D extends { reviewAt?: Date; postponedUntil?: Date }>(
    collection: Collection<D>,
    filter: object,
    { before, now }: ReviewTimes,
    limit: number,
  ) {
    const due: WithId<D>[] = []
    for (const when of [{ reviewAt: { $lte: before } }, { reviewAt: null }, { postponedUntil: { $lte: now } }]) {
      if (due.length === limit) break
      const found = collection.find({ ...filter, ...when } as unknown as Filter<D>).sort(orderOf(when))
      due.push(...(await found.limit(limit - due.length).toArray()))
    }
    return due
  }

  const nextReviewUpdate = (next: NextReview) =>
    next !== 'never' && 'postponedUntil' in next
      ? { $set: { reviewAt: never, postponedUntil: next.postponedUntil } }
      : {
          $set: { reviewAt: next === 'never' ? never : next.periodBeginsAt },
          $unset: { postponedUntil: '' as const },
        }

  return {
    async claimSweep(now, until) {
      // The sort puts workspaces without `sweepAt` first. If another core claims the workspace
      // first, this call returns undefined, and a later call tries again.
      const [first] = await workspaces.find({}).sort({ sweepAt: 1 }).limit(1).toArray()
      if (!first || (first.sweepAt && first.sweepAt > now)) return undefined
      const { _id, sweepAt, sweepToken = 0 } = first
      const claimed = await workspaces.findOneAndUpdate(
        { _id, sweepAt: sweepAt ?? { $exists: false }, sweepToken: first.sweepToken ?? { $exists: false } },
        { $set: { sweepAt: until, sweepToken: sweepToken + 1 } },
        { returnDocument: 'after' },
      )
      if (!claimed) return undefined
      const { retention, sweepAfter: after } = claimed
      return { workspaceId: _id, retention, token: sweepToken + 1, after }
    },

    async endSweep({ workspaceId, token }, nextAt, after) {
      await workspaces.updateOne(
        { _id: workspaceId, sweepToken: token },
        { $set: { sweepAt: nextAt, sweepAfter: after }, ...(!after && { $unset: { sweepAfter: '' } }) },
      )
    },

    async periodsOf(workspaceId) {
      const found = await workspaces.findOne({ _id: workspaceId }, { projection: { retention: 1 } })
      return found ? { retention: found.retention } : undefined
    },

    async connectionIds(workspaceId) {
      return (await connections.find({ workspaceId }, idOnly).toArray()).map(({ _id }) => _id)
    },

    async siteKeys(workspaceId) {
      return (await installations.find({ workspaceId }, idOnly).toArray()).map(({ _id }) => _id)
    },

    async oldConversations(workspaceId, before, limit, after) {
      const found = await conversations
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
    },

    async oldLeads(workspaceId, before, limit) {
      const found = leads.find({ workspaceId, createdAt: { $lte: before }, ...notErasing }, idOnly)
      return (await found.sort({ createdAt: 1, _id: 1 }).limit(limit).toArray()).map(({ _id }) => _id)
    },

    async leadsBefore(leadIds, before) {
      const found = await leads.find({ _id: { $in: leadIds }, createdAt: { $lte: before } }, idOnly).toArray()
      return found.map(({ _id }) => _id)
    },

    async conversationsToReview(connectionId, times, limit) {
      return (await toReview(conversations, { connectionId, ...notErasing }, times, limit)).map(({ _id }) => _id)
    },

    async sessionsToReview(publicSiteKey, times, limit) {
      return (await toReview(sessions, { publicSiteKey }, times, limit)).map((each) => toSession(each))
    },

    async reviewConversation(conversationId, next) {
      await conversations.updateOne({ _id: conversationId }, nextReviewUpdate(next))
    },

    async reviewSession(sessionId, next) {
      await sessions.updateOne({ _id: sessionId }, nextReviewUpdate(next))
    },

    async conversationsOfLeads(leadIds) {
      const ofConversations = { _id: { $in: leadIds }, conversationId: { $exists: true } }
      return (await leads.distinct('conversationId', ofConversations)) as string[]
    },

    async reviewAll(workspaceId, conversationIds, now) {
      if (conversationIds.length === 0) return
      const due = nextReviewUpdate({ periodBeginsAt: new Date(0) })
      await conversations.updateMany({ _id: { $in: conversationIds } }, due)
      await sessions.updateMany({ conversationId: { $in: conversationIds } }, due)
      // Raises the token, so that a sweep in progress does not overwrite `sweepAt`.
      await workspaces.updateOne({ _id: workspaceId }, { $min: { sweepAt: now }, $inc: { sweepToken: 1 } })
    },
  }
}
