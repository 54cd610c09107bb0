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
  /** Ends a visitor's sessions and notes that everything of theirs goes. By now their grants are refused. */
  begin(visitor: VisitorName, requestedBy: string): Promise<Erasure>
  /** Errors: `NotFound`, also for another workspace's. */
  find(erasureId: string, workspaceId: string | undefined): Promise<Erasure>
  /** Takes every step that is due, also of what another process left. */
  work(): Promise<void>
}

/** By then every core has heard that the sessions are over, and streams have told their readers; in milliseconds. */
const settledMs = 2000
/** The clocks of the cores agree to within so many milliseconds (docs/operating.md). */
const clockSkewMs = 2000
/** No call takes this long: what was under way when the sessions ended has been written by then. */
const lateMs = 60_000
/** After so long without word a step's process is taken to be dead. */
const leaseMs = 30_000

/**
 * The erasure of a visitor, in steps that can each be repeated. It ends the sessions and hides the conversations. When
 * every core knows, it notes what there is and removes it. When no call can be under way any more, it does so again. What
 * the record says of the visitor goes last.
 *
 * A visitor who comes back meanwhile begins anew: sessions and subjects note the erasures under way when they begin
 * (`core/privacy/open-erasures-store.ts`), and an erasure leaves alone what names it. A session that got into a conversation of the
 * erasure all the same is ended like the others, before the conversation is removed.
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

  /** Notes everything there is. A browser that comes to it may have sessions that were not looked for yet. */
  async function note(erasure: OpenErasure): Promise<VisitorTraces> {
    for (let known = erasure.traces; ; ) {
      const all = await store.addTraces(erasure, await traces.find(erasure.visitor, erasure, known))
      const isComplete = all.visitorIds.length === known.visitorIds.length
      known = all
      if (isComplete) return all
    }
  }

  /** Ends the sessions that are live, hides the conversations and tells every core; false when nothing was live. */
  async function end(erasure: OpenErasure, { sessionIds, conversationIds }: VisitorTraces): Promise<boolean> {
    const live = (await sessions.find(sessionIds)).filter(({ status }) => status === 'active')
    for (const { sessionId } of live) await sessions.end(sessionId, 'revoked')
    await removal.hideConversations(conversationIds)
    await tell(erasure, [...sessionIds, ...conversationIds])
    return live.length > 0
  }

  /** Hints are kept for a while: a holder that lost its lease leaves none of what is removed already. */
  async function tell(erasure: OpenErasure, ids: string[]) {
    await store.confirm(erasure)
    await wakeups.stateChanged(...ids)
  }

  /** Removes everything; undefined when something new was found, which has time to end first. */
  async function remove(erasure: OpenErasure): Promise<VisitorTraces | undefined> {
    const noted = await note(erasure)
    const wasLive = await end(erasure, noted)
    await removal.stopUploads(noted.sessionIds)
    const all = await store.addTraces(erasure, await traces.find(erasure.visitor, erasure, noted))
    if (wasLive || all.sessionIds.length > noted.sessionIds.length) {
      await store.advance(erasure, erasure.stage, later(settledMs))
      return undefined
    }
    for (const fileId of all.fileIds) await files.delete(fileId)
    await removal.remove(all, erasure.until)
    return all
  }

  const steps: Record<Exclude<ErasureStage, 'finished'>, (erasure: OpenErasure) => Promise<void>> = {
    async ending(erasure) {
      await end(erasure, await note(erasure))
      await store.advance(erasure, 'removing', later(settledMs))
    },

    async removing(erasure) {
      const removed = await remove(erasure)
      if (!removed) return
      await tell(erasure, [...removed.sessionIds, ...removed.conversationIds])
      await store.advance(erasure, 'removed', later(lateMs))
    },

    async removed(erasure) {
      const removed = await remove(erasure)
      if (!removed) return
      await store.finish(erasure, new Date(now()))
      await removal.forgetErasure(erasure.erasureId, removed.visitorIds)
    },
  }

  /** Takes the step that is due. Another core may have taken it over meanwhile, and goes on with it. */
  async function step(erasure: OpenErasure) {
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
      // The record names every browser and subject from its beginning, since a session that begins now looks for its own.
      const { visitorIds } = await traces.find(visitor, { until })
      const known = { ...noTraces(), visitorIds }
      await step(await store.insert({ ...erasure, visitor, until, traces: known }, later(leaseMs)))
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
        await step(due)
      }
    },
  }
}
