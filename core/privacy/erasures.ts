import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { SessionStore } from '../visitors/session-store.ts'
import { type Erasure, type ErasureStage, type ErasureStore, LeaseLost, type OpenErasure } from './erasure-store.ts'
import type { VisitorRemoval } from './visitor-removal-store.ts'
import { noTraces, type VisitorName, type VisitorTraceStore, type VisitorTraces } from './visitor-traces-store.ts'

export interface Erasures {
  /**
   * Ends a visitor's sessions and records the erasure. When it resolves, their grants are refused.
   */
  begin(visitor: VisitorName, requestedBy: string): Promise<Erasure>
  /** Errors: `NotFound`, also for an erasure of another workspace. */
  find(erasureId: string, workspaceId: string | undefined): Promise<Erasure>
  /** Runs every due step, including those that another process left. */
  work(): Promise<void>
}

/**
 * Within this time every core has the wake-up, and the streams have sent the end of the sessions.
 */
const propagationMs = 2000
/** Maximum difference between the clocks of the cores (docs/operating.md). */
const clockSkewMs = 2000
/** Longer than any call. Calls under way when the sessions ended have finished after this time. */
const maxCallMs = 60_000
/** Time after which another core may take over a step. */
const leaseMs = 30_000

/**
 * Erases a visitor in steps that can each be repeated. It ends the sessions and hides the
 * conversations. When every core knows, it records the data to remove and removes it. When no call
 * can be under way any more, it does so again. The visitor's data in the erasure's own record is
 * removed last.
 *
 * A visitor who returns meanwhile is new: sessions and subjects record the erasures under way when
 * they begin (`core/privacy/open-erasures-store.ts`), and those erasures skip them. A session that
 * still got into a conversation of the erasure is ended before the conversation is removed.
 */
export function createErasures(dependencies: {
  store: ErasureStore
  traces: VisitorTraceStore
  removal: VisitorRemoval
  files: Pick<ScreenshotStore, 'delete'>
  sessions: Pick<SessionStore, 'end' | 'find'>
  wakeups: Pick<Wakeups, 'stateChanged'>
  now: () => number
}): Erasures {
  const { store, traces, removal, files, sessions, wakeups, now } = dependencies
  const later = (ms: number) => new Date(now() + ms)

  /**
   * Records all data of the visitor. Repeats when it finds a new browser, which may have more
   * sessions.
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
   * Ends the live sessions, hides the conversations and wakes every core. Returns false when no
   * session was live.
   */
  async function endSessions(erasure: OpenErasure, { sessionIds, conversationIds }: VisitorTraces): Promise<boolean> {
    const live = (await sessions.find(sessionIds)).filter(({ status }) => status === 'active')
    for (const { sessionId } of live) await sessions.end(sessionId, 'revoked')
    await removal.hideConversations(conversationIds)
    await announce(erasure, [...sessionIds, ...conversationIds])
    return live.length > 0
  }

  /**
   * Wakes the cores. Wake-ups are stored for a while, so an owner without its lease must not write
   * ids of removed data.
   */
  async function announce(erasure: OpenErasure, ids: string[]) {
    await store.confirm(erasure)
    await wakeups.stateChanged(...ids)
  }

  /** Removes all data. Returns undefined when new sessions were found, which must end first. */
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
    await removal.remove(all, erasure.until)
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
      const removed = await remove(erasure)
      if (!removed) return
      await store.finish(erasure, new Date(now()))
      await removal.forgetErasure(erasure.erasureId, removed.visitorIds)
    },
  }

  /** Runs the due step. If another core has taken it over, that core continues it. */
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
      // The record has every browser and subject from the beginning, because new sessions look up
      // erasures by them.
      const { visitorIds } = await traces.find(visitor, { until })
      const known = { ...noTraces(), visitorIds }
      await runStep(await store.insert({ ...erasure, visitor, until, traces: known }, later(leaseMs)))
      return { ...erasure, stage: 'removing' }
    },

    async find(erasureId, workspaceId) {
      const found = await store.find(erasureId)
      if (!found || (workspaceId !== undefined && found.workspaceId !== workspaceId))
        throw new ServiceError(ErrorCode.NOT_FOUND)
      return found
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
