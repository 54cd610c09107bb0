import { type Core, dateOf } from '../core.ts'
import { recallDeliveries } from '../deliveries/sources.ts'
import { inWorkspace, type Scope } from '../errors.ts'
import { newId } from '../ids.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { forgetErasure, hideFromAll, partsOfVisitor } from './data-store.ts'
import { type Erasure, noTraces, type VisitorName, type VisitorTraces } from './model.ts'
import { addTraces, beginErasure, confirmRemoval, type Removal, type RemovalList } from './removals.ts'
import { findTraces } from './visitor-traces.ts'

/** Every core reads the wake-up in this time, and every stream sends the end of its session. */
const propagationMs = 2000
/** Maximum difference of the cores' clocks, in milliseconds (docs/operating.md). */
const clockSkewMs = 2000

/** Finds data of the visitor and records the ids. Returns all of them. */
async function addFound(core: Core, removal: Removal, known: VisitorTraces) {
  const { name, until } = removal.visitor!
  const found = await findTraces(core, name, { until, erasureId: removal.lease.id }, known)
  return addTraces(core, removal, found)
}

/** Repeats the search for another browser of the visitor, which may have more sessions. */
async function recordTraces(core: Core, removal: Removal) {
  for (let known = removal.visitor!.traces; ; ) {
    const all = await addFound(core, removal, known)
    const isComplete = all.visitorIds.length === known.visitorIds.length
    known = all
    if (isComplete) return all
  }
}

/** Ends live sessions, hides the data, and tells every core. Returns whether a session was live. */
async function endSessions(core: Core, removal: Removal, known: VisitorTraces) {
  const sessions = sessionStoreOf(core)
  const live = (await sessions.find(known.sessionIds)).filter(({ status }) => status === 'active')
  for (const { sessionId } of live) await sessions.end(sessionId, 'revoked')
  await hideFromAll(core, known)
  await announce(core, removal, known)
  return live.length > 0
}

/** Tells every core. A core that lost the lease must not write ids of removed data. */
async function announce(core: Core, removal: Removal, { sessionIds, conversationIds, leadIds }: VisitorTraces) {
  await confirmRemoval(core, removal)
  await wakeupsOf(core).stateChanged(...sessionIds, ...conversationIds, ...leadIds)
}

/**
 * Hiding ends the sessions and hides the conversations. This is repeated for new sessions before the data,
 * and the late data, is removed. A visitor who returns meanwhile is a new one: the new sessions store the
 * ids of unfinished erasures (`core/sessions/session-store.ts`), which skip them. One that has joined
 * a conversation of the erasure is ended first.
 */
export const visitorList: RemovalList = {
  hiddenMs: propagationMs,
  removesLate: true,

  async hide(core, removal) {
    const known = await recordTraces(core, removal)
    await endSessions(core, removal, known)
    await recallDeliveries(core, known)
  },

  /** Waits for the end of sessions that were live or are new. */
  async next(core, removal) {
    const { commands, conversations } = core.db
    const recorded = await recordTraces(core, removal)
    const wasLive = await endSessions(core, removal, recorded)
    // Prevents further uploads, so that all files are found.
    await commands.updateMany({ sessionId: { $in: recorded.sessionIds } }, { $set: { state: 'cancelled' } })
    const all = await addFound(core, removal, recorded)
    if (wasLive || all.sessionIds.length > recorded.sessionIds.length) return { waitMs: propagationMs }
    const epochs = await conversations.distinct('epoch', { _id: { $in: all.conversationIds } })
    await addTraces(core, removal, noTraces(), epochs)
    return { items: removal.ids, partsOf: () => partsOfVisitor(core, all) }
  },

  removed: async (core, removal) => announce(core, removal, await addTraces(core, removal, noTraces())),

  forget: (core, { lease, visitor }) => forgetErasure(core, lease.id, visitor!.traces.visitorIds),
}

/**
 * Ends a visitor's sessions and records the erasure. When the call resolves, their grants are refused, and
 * no delivery of their data begins.
 */
export async function eraseVisitor(core: Core, name: VisitorName, requestedBy: string): Promise<Erasure> {
  const { workspaceId } = name
  const erasureId = newId('ers')
  const facts = { workspaceId, requestedBy, requestedAt: dateOf(core) }
  const until = dateOf(core, clockSkewMs)
  // New sessions look up erasures by the ids of the visitor, so the record has them from the beginning.
  const { visitorIds } = await findTraces(core, name, { until })
  const traces = { ...noTraces(), visitorIds }
  await beginErasure(core, { _id: erasureId, ...facts, stage: 'ending', visitor: name, until, traces })
  return { erasureId, ...facts, stage: 'removing' }
}

/** Errors: `NotFound`, also for one of another workspace. */
export async function findErasure(core: Core, erasureId: string, scope: Scope): Promise<Erasure> {
  const found = await core.db.erasures.findOne({ _id: erasureId }, { projection: { visitor: 0, traces: 0 } })
  const { _id, ...rest } = inWorkspace(found ?? undefined, scope)
  return { erasureId: _id, ...rest }
}
