import { msUntil, whileHeld } from '../mongodb/leases.ts'
import type { Session } from '../sessions/model.ts'
import type { RetentionOf } from '../workspaces/retention.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataStore } from './data-store.ts'
import { type ConversationFacts, cutOffOf, isConversationDue, leaseMs, postponedMs } from './model.ts'
import type { RemovalStore } from './removal-store.ts'
import type { PacedRemoval, Removals } from './removals.ts'
import type { InboxPlace, RetentionStore, Sweep } from './retention-store.ts'

const sweepEveryMs = 3_600_000
/** Pause in milliseconds before the next sweep of a workspace that has more old data. */
const moreAfterMs = 1_000
/** Pause in milliseconds before the next sweep of a workspace with `maxOpen` open removals. */
const fullAfterMs = 10_000
const maxOpen = 8
/** Maximum number of conversations or leads in one removal. */
const batch = 1_000
const reviewBatch = 100

type Days = ReturnType<RetentionOf>

/**
 * Finds what is older than a workspace allows. Held deliveries, audit entries and ended sessions are
 * removed at once, because no call can use them at the same time. Conversations and leads are
 * removed by `removals.ts`.
 */
export function createRetention(dependencies: {
  store: RetentionStore
  factStore: ConversationFactsStore
  data: Pick<DataStore, 'deliveryPart' | 'partsOfSession'>
  removals: Pick<Removals, 'begin'>
  removalStore: Pick<RemovalStore, 'countOpen'>
  retentionOf: RetentionOf
  paced: PacedRemoval
  now: () => number
}) {
  const { store, factStore, data, removals, removalStore, retentionOf, paced, now } = dependencies

  const dueOf = (facts: ConversationFacts[], days: Days) => facts.filter((each) => isConversationDue(each, days, now()))

  const postponed = () => ({ postponedUntil: new Date(now() + postponedMs) })

  /** Begins a removal. Returns whether there may be more to remove. */
  async function begin(workspaceId: string, kind: 'conversations' | 'leads', ids: string[]) {
    if (ids.length > 0) await removals.begin({ workspaceId, kind, ids })
    return ids.length === batch
  }

  async function sweepDeliveries(workspaceId: string, days: Days): Promise<boolean> {
    const [heldBefore, auditBefore] = [cutOffOf(days.heldDeliveries, now()), cutOffOf(days.audit, now())]
    const subscriptionIds = await store.subscriptionIds(workspaceId)
    const held = { destination: { $in: subscriptionIds }, status: 'held' as const }
    const parts = [
      ...(heldBefore ? [data.deliveryPart({ ...held, updatedAt: { $lte: heldBefore } }, 'held_deliveries')] : []),
      ...(auditBefore ? store.auditParts(workspaceId, subscriptionIds, auditBefore) : []),
    ]
    return (await paced.remove({ items: [workspaceId], partsOf: () => parts })).length > 0
  }

  async function sweepLeads(workspaceId: string, days: Days): Promise<boolean> {
    const before = cutOffOf(days.leads, now())
    return before !== undefined && begin(workspaceId, 'leads', await store.oldLeads(workspaceId, before, batch))
  }

  /**
   * Sweeps the next conversations whose last message is old. Keeps those with a younger session.
   * Returns the position at which the next call continues; undefined at the end of the list.
   */
  async function sweepConversations({ workspaceId, after }: Sweep, days: Days): Promise<InboxPlace | undefined> {
    const before = cutOffOf(days.conversations, now())
    const found = before ? await store.oldConversations(workspaceId, before, batch, after) : []
    await begin(workspaceId, 'conversations', idsOf(dueOf(await factStore.factsOf(idsOf(found)), days)))
    return found.length === batch ? found.at(-1) : undefined
  }

  /**
   * Reviews conversations that may have no message. A conversation with a message needs no further
   * review: `sweepConversations` finds it by the time of its last message.
   */
  async function reviewConversations(workspaceId: string, days: Days, before: Date): Promise<boolean> {
    let more = false
    for (const connectionId of await store.connectionIds(workspaceId)) {
      const ids = await store.conversationsToReview(connectionId, { before, now: new Date(now()) }, batch)
      const facts = await factStore.factsOf(ids)
      const due = dueOf(facts, days)
      for (const { conversationId, hasMessage, lastActivityAt } of facts.filter((each) => !due.includes(each))) {
        if (hasMessage) await factStore.repairInbox(conversationId)
        const next = lastActivityAt > before ? { periodBeginsAt: lastActivityAt } : postponed()
        await store.reviewConversation(conversationId, hasMessage ? 'never' : next)
      }
      await begin(workspaceId, 'conversations', idsOf(due))
      more ||= ids.length === batch
    }
    return more
  }

  /** Removes ended sessions without a message from conversations that stay. */
  async function reviewSessions(workspaceId: string, cutOff: Date): Promise<boolean> {
    let more = false
    for (const publicSiteKey of await store.siteKeys(workspaceId)) {
      const sessions = await store.sessionsToReview(
        publicSiteKey,
        { before: cutOff, now: new Date(now()) },
        reviewBatch,
      )
      for (const [conversationId, toReview] of Map.groupBy(sessions, (session) => session.conversationId))
        await reviewSessionsOf(conversationId, toReview, cutOff)
      more ||= sessions.length === reviewBatch
    }
    return more
  }

  async function reviewSessionsOf(conversationId: string, toReview: Session[], cutOff: Date) {
    const [facts] = await factStore.factsOf([conversationId])
    const all = await factStore.sessionsOf([conversationId])
    const writers = await factStore.writersIn(conversationId, all)
    for (const session of toReview) {
      const { sessionId, renewableUntil: expiry } = session
      // Another session that has a message or is newer. It is kept and links the visitor to the
      // conversation. Without such a session, the reviewed session is not removed.
      const heir = all.find(
        (other) => other.sessionId !== sessionId && (writers.has(other.sessionId) || isNewer(other, session)),
      )
      const remove = (lastSessionId?: string) =>
        paced.remove({ items: [session], partsOf: () => data.partsOfSession(session, lastSessionId) })
      if (expiry > cutOff) await store.reviewSession(sessionId, { periodBeginsAt: expiry })
      else if (!facts) await remove()
      else if (writers.get(sessionId) === 'message') await store.reviewSession(sessionId, 'never')
      // The newest session of a conversation without messages is removed with the conversation.
      else if (writers.has(sessionId) || !heir) await store.reviewSession(sessionId, postponed())
      else await remove(heir.sessionId)
    }
  }

  async function sweepWorkspace(sweep: Sweep): Promise<void> {
    const { workspaceId } = sweep
    const end = (pauseMs: number, after?: InboxPlace) => store.endSweep(sweep, new Date(now() + pauseMs), after)
    const days = retentionOf(sweep)
    if ((await removalStore.countOpen(workspaceId)) >= maxOpen) return end(fullAfterMs, sweep.after)
    const after = await sweepConversations(sweep, days)
    const more = [after !== undefined, await sweepDeliveries(workspaceId, days), await sweepLeads(workspaceId, days)]
    const emptyBefore = cutOffOf(days.emptySessions, now())
    const reviewBefore = emptyBefore ?? cutOffOf(days.conversations, now())
    if (reviewBefore) more.push(await reviewConversations(workspaceId, days, reviewBefore))
    if (emptyBefore) more.push(await reviewSessions(workspaceId, emptyBefore))
    await end(more.includes(true) ? moreAfterMs : sweepEveryMs, after)
  }

  return {
    /**
     * Sweeps every workspace that is due: begins the removal of data that is older than allowed. A
     * workspace is due every hour, and at once when its policy has changed. Returns the time in
     * milliseconds until the next workspace is due.
     */
    async sweep(): Promise<number | undefined> {
      for (;;) {
        const sweep = await store.claimSweep(new Date(now()), new Date(now() + leaseMs))
        if (!sweep) return msUntil(await store.nextSweepAt(), now)
        await whileHeld(sweepWorkspace(sweep))
      }
    },
  }
}

export type Retention = ReturnType<typeof createRetention>

const idsOf = (conversations: { conversationId: string }[]) => conversations.map(({ conversationId }) => conversationId)

function isNewer(one: Session, other: Session): boolean {
  const [a, b] = [one.createdAt.getTime(), other.createdAt.getTime()]
  return a === b ? one.sessionId > other.sessionId : a > b
}
