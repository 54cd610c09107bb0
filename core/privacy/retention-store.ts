import type { Collection, Filter, Sort, WithId } from 'mongodb'
import { createLeases, type Lease, newToken } from '../mongodb/leases.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import type { Session } from '../sessions/model.ts'
import { toSession } from '../sessions/session-store.ts'
import type { Retention } from '../workspaces/model.ts'
import { documents, idOnly, ids, type Part } from './parts-store.ts'
import type { PrivacyCollections } from './visitor-data-store.ts'

/** A workspace whose data is being swept. */
export interface Sweep {
  workspaceId: string
  retention?: Retention
  lease: Lease
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

export type RetentionStore = ReturnType<typeof createRetentionStore>

/** Value of `reviewAt` if no further review is needed. */
const never = new Date(8.64e15)

const orderOf = (condition: object): Sort => Object.fromEntries(Object.keys(condition).map((name) => [name, 1]))
/** Finds data that may be older than allowed. Every query is answered by an index. */
export function createRetentionStore(collections: PrivacyCollections) {
  const { workspaces, connections, installations, conversations, sessions, leads } = collections
  const { leadSubscriptions, deliveries, erasures, policyChanges } = collections
  const leases = createLeases(workspaces, { until: 'sweepAt', token: 'sweepToken', isFreeWithoutUntil: true })

  /** Returns documents whose `reviewAt` is due, then postponed documents. */
  async function toReview<D extends { reviewAt?: Date; postponedUntil?: Date }>(
    collection: Collection<D>,
    filter: object,
    { before, now }: ReviewTimes,
    limit: number,
  ) {
    const due: WithId<D>[] = []
    for (const when of [{ reviewAt: { $lte: before } }, { postponedUntil: { $lte: now } }]) {
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
    /** Leases a workspace whose sweep is due; undefined if none is due. */
    async claimSweep(now: Date, until: Date): Promise<Sweep | undefined> {
      const found = await leases.take({ now, until })
      if (!found) return undefined
      const { _id, retention, sweepAfter: after } = found.document
      return { lease: found.lease, workspaceId: _id, retention, after }
    },

    nextSweepAt: () => leases.nextAt(),

    /**
     * Ends the sweep, and makes the next one due at `nextAt`. Throws `LeaseLost` if the workspace was
     * changed or claimed again during the sweep.
     */
    async endSweep({ lease }: Sweep, nextAt: Date, after: InboxPlace | undefined): Promise<void> {
      await leases.write(lease, {
        $set: { sweepAt: nextAt, ...(after && { sweepAfter: after }) },
        ...(!after && { $unset: { sweepAfter: '' } }),
      })
    },

    /** Returns the periods of a workspace; undefined if it does not exist. */
    async periodsOf(workspaceId: string): Promise<{ retention?: Retention } | undefined> {
      const found = await workspaces.findOne({ _id: workspaceId }, { projection: { retention: 1 } })
      return found ? { retention: found.retention } : undefined
    },

    connectionIds: async (workspaceId: string) => ids(await connections.find({ workspaceId }, idOnly).toArray()),
    siteKeys: async (workspaceId: string) => ids(await installations.find({ workspaceId }, idOnly).toArray()),

    /**
     * Returns conversations whose last message in the inbox is not later than `before`, oldest first.
     */
    async oldConversations(
      workspaceId: string,
      before: Date,
      limit: number,
      after: InboxPlace | undefined,
    ): Promise<InboxPlace[]> {
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

    async oldLeads(workspaceId: string, before: Date, limit: number): Promise<string[]> {
      const found = leads.find({ workspaceId, createdAt: { $lte: before }, ...notErasing }, idOnly)
      return ids(await found.sort({ createdAt: 1, _id: 1 }).limit(limit).toArray())
    },

    /** Returns those of the leads that were captured at this time or earlier. */
    leadsBefore: async (leadIds: string[], before: Date) =>
      ids(await leads.find({ _id: { $in: leadIds }, createdAt: { $lte: before } }, idOnly).toArray()),

    /**
     * Returns conversations whose `reviewAt` is not later than `before`, then postponed conversations
     * that are due at `now`.
     */
    conversationsToReview: async (connectionId: string, times: ReviewTimes, limit: number) =>
      ids(await toReview(conversations, { connectionId, ...notErasing }, times, limit)),

    sessionsToReview: async (publicSiteKey: string, times: ReviewTimes, limit: number): Promise<Session[]> =>
      (await toReview(sessions, { publicSiteKey }, times, limit)).map((each) => toSession(each)),

    /**
     * Sets the next review of a conversation or session: at the end of the period that begins at
     * `periodBeginsAt`, at `postponedUntil`, or never.
     */
    async reviewConversation(conversationId: string, next: NextReview): Promise<void> {
      await conversations.updateOne({ _id: conversationId }, nextReviewUpdate(next))
    },

    async reviewSession(sessionId: string, next: NextReview): Promise<void> {
      await sessions.updateOne({ _id: sessionId }, nextReviewUpdate(next))
    },

    /** Makes conversations, their sessions and their workspace due for a review. */
    async reviewAll(workspaceId: string, conversationIds: string[]): Promise<void> {
      if (conversationIds.length === 0) return
      const due = nextReviewUpdate({ periodBeginsAt: new Date(0) })
      await conversations.updateMany({ _id: { $in: conversationIds } }, due)
      await sessions.updateMany({ conversationId: { $in: conversationIds } }, due)
      // A sweep in progress loses its lease, so that it does not overwrite `sweepAt`.
      await workspaces.updateOne({ _id: workspaceId }, { $set: { sweepAt: new Date(0), sweepToken: newToken() } })
    },

    subscriptionIds: async (workspaceId: string) =>
      ids(await leadSubscriptions.find({ workspaceId }, idOnly).toArray()),

    /** Returns the audit entries from `before` or earlier. */
    auditParts(workspaceId: string, subscriptionIds: string[], before: Date): Part[] {
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
          act: (found) =>
            deliveries.updateMany(
              { _id: { $in: ids(found) }, requestedAt: isOld },
              { $unset: { requestedAt: '', 'attempts.$[].requestedBy': '' } },
            ),
        }),
        documents(erasures, { workspaceId, finishedAt: isOld }, { kind: 'audit' }),
        documents(policyChanges, { workspaceId, at: isOld }, { kind: 'audit' }),
      ]
    },
  }
}
