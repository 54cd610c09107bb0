import type { DeliveriesOf } from '../deliveries/sources.ts'
import { inWorkspace } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { DataStore } from './data-store.ts'
import { type Erasure, leaseMs, noTraces, type VisitorName, type VisitorTraces } from './model.ts'
import type { Removal, RemovalStore } from './removal-store.ts'
import type { RemovalList, Removals } from './removals.ts'
import type { VisitorTraceStore } from './visitor-trace-store.ts'

/**
 * Pause in milliseconds after sessions are ended. Within this time, every core reads the wake-up,
 * and every stream sends the end of its session.
 */
const propagationMs = 2000
/** Maximum difference between the clocks of the cores, in milliseconds (docs/operating.md). */
const clockSkewMs = 2000

/**
 * The removal of a visitor. Hiding ends the sessions and hides the conversations. Before the data is
 * removed, and again before late data is removed, this is repeated for sessions that are new.
 *
 * A visitor who returns during an erasure is treated as a new visitor. The new sessions store the
 * ids of the unfinished erasures (`core/sessions/open-erasures-store.ts`), and these erasures skip
 * the sessions. A new session may still have joined a conversation that the erasure removes. Such a
 * session is ended first.
 */
export function createVisitorList(dependencies: {
  store: Pick<RemovalStore, 'addTraces' | 'confirm'>
  traces: VisitorTraceStore
  data: DataStore
  sessions: Pick<SessionStore, 'end' | 'find'>
  wakeups: Pick<Wakeups, 'stateChanged'>
  recallDeliveries: (of: DeliveriesOf) => Promise<void>
}): RemovalList {
  const { store, traces, data, sessions, wakeups, recallDeliveries } = dependencies

  async function addTraces(removal: Removal, known: VisitorTraces): Promise<VisitorTraces> {
    const { name, until } = removal.visitor!
    const found = await traces.find(name, { until, erasureId: removal.lease.id }, known)
    return store.addTraces(removal, found)
  }

  /**
   * Records the ids of all data of the visitor. Repeats the search when it finds another browser of
   * the visitor, because that browser may have more sessions.
   */
  async function recordTraces(removal: Removal): Promise<VisitorTraces> {
    for (let known = removal.visitor!.traces; ; ) {
      const all = await addTraces(removal, known)
      const isComplete = all.visitorIds.length === known.visitorIds.length
      known = all
      if (isComplete) return all
    }
  }

  /**
   * Ends the live sessions, hides conversations and leads, and sends wake-ups to every core. Returns
   * false when no session was live.
   */
  async function endSessions(removal: Removal, known: VisitorTraces): Promise<boolean> {
    const live = (await sessions.find(known.sessionIds)).filter(({ status }) => status === 'active')
    for (const { sessionId } of live) await sessions.end(sessionId, 'revoked')
    await data.hideFromAll(known)
    await announce(removal, known)
    return live.length > 0
  }

  /**
   * Sends wake-ups with these ids to every core. Checks the lease first, because a core that lost
   * it must not write ids of removed data.
   */
  async function announce(removal: Removal, { sessionIds, conversationIds, leadIds }: VisitorTraces) {
    await store.confirm(removal)
    await wakeups.stateChanged(...sessionIds, ...conversationIds, ...leadIds)
  }

  return {
    hiddenMs: propagationMs,
    removesLate: true,

    async hide(removal) {
      const known = await recordTraces(removal)
      await endSessions(removal, known)
      await recallDeliveries(known)
    },

    /** Waits if a session was live or is new, because these sessions must end first. */
    async next(removal) {
      const recorded = await recordTraces(removal)
      const wasLive = await endSessions(removal, recorded)
      await data.stopUploads(recorded.sessionIds)
      const all = await addTraces(removal, recorded)
      if (wasLive || all.sessionIds.length > recorded.sessionIds.length) return { waitMs: propagationMs }
      await store.addTraces(removal, noTraces(), await data.epochsOf(all.conversationIds))
      return { items: removal.ids, partsOf: () => data.partsOfVisitor(all) }
    },

    removed: async (removal) => announce(removal, await store.addTraces(removal, noTraces())),

    forget: ({ lease, visitor }) => data.forgetErasure(lease.id, visitor!.traces.visitorIds),
  }
}

export function createErasures(dependencies: {
  store: Pick<RemovalStore, 'insertErasure' | 'findErasure'>
  removals: Pick<Removals, 'runStep'>
  traces: VisitorTraceStore
  now: () => number
}) {
  const { store, removals, traces, now } = dependencies

  const later = (ms: number) => new Date(now() + ms)

  return {
    /**
     * Ends a visitor's sessions and records the erasure. When the call resolves, the grants of these
     * sessions are refused, and no delivery of the visitor's data begins.
     */
    async begin(name: VisitorName, requestedBy: string): Promise<Erasure> {
      const { workspaceId } = name
      const requestedAt = new Date(now())
      const erasure: Erasure = { erasureId: newId('ers'), workspaceId, stage: 'ending', requestedBy, requestedAt }
      const until = later(clockSkewMs)
      // The record must have all ids of the visitor from the beginning, because new sessions look
      // up erasures by these ids.
      const { visitorIds } = await traces.find(name, { until })
      const visitor = { name, until, traces: { ...noTraces(), visitorIds } }
      const inserted = await store.insertErasure(erasure, visitor, later(leaseMs))
      if (inserted) await removals.runStep(inserted)
      return { ...erasure, stage: 'removing' }
    },

    /** Returns an erasure. Errors: `NotFound` for an unknown erasure or one of another workspace. */
    find: async (erasureId: string, workspaceId: string | undefined): Promise<Erasure> =>
      inWorkspace(await store.findErasure(erasureId), workspaceId),
  }
}

export type Erasures = ReturnType<typeof createErasures>
