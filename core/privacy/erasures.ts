import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import { inWorkspace } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SessionStore } from '../visitors/session-store.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { ErasureStore } from './erasure-store.ts'
import { LeaseLost } from './lease-store.ts'
import {
  type Erasure,
  type ErasureStage,
  leaseMs,
  maxCallMs,
  noTraces,
  type OpenErasure,
  type VisitorName,
  type VisitorTraces,
} from './model.ts'
import type { VisitorRemoval } from './visitor-data-store.ts'
import type { VisitorTraceStore } from './visitor-trace-store.ts'

export interface Erasures {
  /**
   * Ends a visitor's sessions and records the erasure. When the call resolves, the grants of these
   * sessions are refused.
   */
  begin(visitor: VisitorName, requestedBy: string): Promise<Erasure>
  /** Returns an erasure. Errors: `NotFound` for an unknown erasure or one of another workspace. */
  find(erasureId: string, workspaceId: string | undefined): Promise<Erasure>
  /** Runs every due step, including steps that another process did not complete. */
  work(): Promise<void>
}

/**
 * Pause in milliseconds after sessions are ended. Within this time, every core reads the wake-up,
 * and every stream sends the end of its session.
 */
const propagationMs = 2000
/** Maximum difference between the clocks of the cores, in milliseconds (docs/operating.md). */
const clockSkewMs = 2000

/**
 * Erases a visitor in three steps. Each step can be repeated. The first step ends the sessions and
 * hides the conversations. After `propagationMs`, the second step records which data to remove and
 * removes it. After `maxCallMs`, the third step removes data that calls wrote in the meantime. After
 * `maxCallMs` again, every wake-up with these ids is old. The third step then removes the wake-ups,
 * the references to the erasure, and the visitor's ids in its record.
 *
 * A visitor who returns during an erasure is treated as a new visitor. The new sessions store the
 * ids of the unfinished erasures (`core/visitors/open-erasures-store.ts`), and these erasures skip
 * the sessions. A new session may still have joined a conversation that the erasure removes. Such a
 * session is ended first.
 */
export function createErasures(dependencies: {
  store: ErasureStore
  traces: VisitorTraceStore
  removal: VisitorRemoval
  files: Pick<ScreenshotStore, 'delete'>
  sessions: Pick<SessionStore, 'end' | 'find'>
  wakeups: Pick<Wakeups, 'stateChanged'>
  sweepWakeups: WakeupService['sweepWakeups']
  now: () => number
}): Erasures {
  const { store, traces, removal, files, sessions, wakeups, sweepWakeups, now } = dependencies
  const later = (ms: number) => new Date(now() + ms)

  /**
   * Records the ids of all data of the visitor. Repeats the search when it finds another browser of
   * the visitor, because that browser may have more sessions.
   */
  async function recordTraces(erasure: OpenErasure): Promise<VisitorTraces> {
    for (let known = erasure.traces; ; ) {
      const all = await store.addTraces(erasure, await traces.find(erasure.visitor, erasure, known))
      const isComplete = all.visitorIds.length === known.visitorIds.length
      known = all
      if (isComplete) return all
    }
  }

  /**
   * Ends the live sessions, hides the conversations and sends wake-ups to every core. Returns false
   * when no session was live.
   */
  async function endSessions(erasure: OpenErasure, { sessionIds, conversationIds }: VisitorTraces): Promise<boolean> {
    const live = (await sessions.find(sessionIds)).filter(({ status }) => status === 'active')
    for (const { sessionId } of live) await sessions.end(sessionId, 'revoked')
    await removal.hideConversations(conversationIds)
    await announce(erasure, [...sessionIds, ...conversationIds])
    return live.length > 0
  }

  /**
   * Sends wake-ups with these ids to every core. Checks the lease first, because a core that lost
   * it must not write ids of removed data.
   */
  async function announce(erasure: OpenErasure, ids: string[]) {
    await store.confirm(erasure)
    await wakeups.stateChanged(...ids)
  }

  /**
   * Removes all data and returns its ids. Returns undefined if a session was live or is new. The
   * step then runs again, because these sessions must end first.
   */
  async function remove(erasure: OpenErasure): Promise<VisitorTraces | undefined> {
    const recorded = await recordTraces(erasure)
    const wasLive = await endSessions(erasure, recorded)
    await removal.stopUploads(recorded.sessionIds)
    const all = await store.addTraces(erasure, await traces.find(erasure.visitor, erasure, recorded))
    if (wasLive || all.sessionIds.length > recorded.sessionIds.length) {
      await store.advance(erasure, erasure.stage, later(propagationMs))
      return undefined
    }
    for (const fileId of all.fileIds) await files.delete(fileId)
    await store.addEpochs(erasure, await removal.epochsOf(all.conversationIds))
    await removal.remove(all)
    return all
  }

  const steps: Record<Exclude<ErasureStage, 'finished'>, (erasure: OpenErasure) => Promise<void>> = {
    async ending(erasure) {
      await endSessions(erasure, await recordTraces(erasure))
      await store.advance(erasure, 'removing', later(propagationMs))
    },

    async removing(erasure) {
      const removed = await remove(erasure)
      if (!removed) return
      await announce(erasure, [...removed.sessionIds, ...removed.conversationIds])
      await store.advance(erasure, 'removed', later(maxCallMs))
    },

    async removed(erasure) {
      if (!erasure.isSwept) {
        const removed = await remove(erasure)
        if (removed) await store.setSwept(erasure, removed, later(maxCallMs))
        return
      }
      await removal.forgetErasure(erasure.erasureId, erasure.traces.visitorIds)
      await ((await sweepWakeups())
        ? store.finish(erasure, new Date(now()))
        : store.advance(erasure, 'removed', later(propagationMs)))
    },
  }

  /** Runs the due step. If another core has taken over the erasure, that core continues it. */
  async function runStep(erasure: OpenErasure) {
    if (erasure.stage === 'finished') return
    await steps[erasure.stage](erasure).catch((error: unknown) => {
      if (!(error instanceof LeaseLost)) throw error
    })
  }

  return {
    async begin(visitor, requestedBy) {
      const requestedAt = new Date(now())
      const { workspaceId } = visitor
      const erasure: Erasure = { erasureId: newId('ers'), workspaceId, stage: 'ending', requestedBy, requestedAt }
      const until = later(clockSkewMs)
      // The record must have all ids of the visitor from the beginning, because new sessions look
      // up erasures by these ids.
      const { visitorIds } = await traces.find(visitor, { until })
      const known = { ...noTraces(), visitorIds }
      await runStep(await store.insert({ ...erasure, visitor, until, traces: known }, later(leaseMs)))
      return { ...erasure, stage: 'removing' }
    },

    async find(erasureId, workspaceId) {
      return inWorkspace(await store.find(erasureId), workspaceId)
    },

    async work() {
      for (;;) {
        const due = await store.claim(new Date(now()), later(leaseMs))
        if (!due) return
        await runStep(due)
      }
    },
  }
}
