import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { Erasure, ErasureStage, ErasureStore, OpenErasure } from '../store/erasures.ts'
import type { ScreenshotStore } from '../store/screenshots.ts'
import type { SessionStore } from '../store/sessions.ts'
import type { VisitorRemoval } from '../store/visitor-removal.ts'
import type { VisitorName, VisitorTraceStore } from '../store/visitor-traces.ts'

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
/** No call takes this long: what was under way when the sessions ended has been written by then. */
const lateMs = 60_000
/** After so long without word a step's process is taken to be dead. */
const leaseMs = 30_000

/**
 * The erasure of a visitor, as steps of which each can be repeated: end the sessions; when that is known everywhere, note
 * what there is and remove it; and once more when nothing can be under way any more. What the record says of the visitor
 * goes last.
 */
export function createErasures(dependencies: {
  store: ErasureStore
  traces: VisitorTraceStore
  removal: VisitorRemoval
  files: Pick<ScreenshotStore, 'delete'>
  sessions: Pick<SessionStore, 'end'>
  wakeups: Pick<Wakeups, 'stateChanged'>
  now: () => number
}): Erasures {
  const { store, traces, removal, files, sessions, wakeups, now } = dependencies
  const later = (ms: number) => new Date(now() + ms)

  async function endSessions({ erasureId, visitor, until }: Pick<OpenErasure, 'erasureId' | 'visitor' | 'until'>) {
    const found = await traces.find(visitor, until)
    const { sessionIds } = await store.addTraces(erasureId, found)
    for (const sessionId of sessionIds) await sessions.end(sessionId, 'revoked')
    if (sessionIds.length > 0) await wakeups.stateChanged(...sessionIds)
    await store.advance(erasureId, 'removing', later(settledMs))
  }

  async function remove({ erasureId, visitor, until, traces: known }: OpenErasure) {
    const { sessionIds } = await traces.find(visitor, until, known)
    await removal.stopUploads(sessionIds)
    const all = await store.addTraces(erasureId, await traces.find(visitor, until, known))
    for (const fileId of all.fileIds) await files.delete(fileId)
    await removal.remove(all, until)
    return all
  }

  const steps: Record<Exclude<ErasureStage, 'finished'>, (erasure: OpenErasure) => Promise<void>> = {
    ending: endSessions,

    async removing(erasure) {
      const { sessionIds, conversationIds } = await remove(erasure)
      await wakeups.stateChanged(...sessionIds, ...conversationIds)
      await store.advance(erasure.erasureId, 'removed', later(lateMs))
    },

    async removed(erasure) {
      await remove(erasure)
      await store.finish(erasure.erasureId, new Date(now()))
    },
  }

  return {
    async begin(visitor, requestedBy) {
      const requestedAt = new Date(now())
      const { workspaceId } = visitor
      const erasure: Erasure = { erasureId: newId('ers'), workspaceId, stage: 'ending', requestedBy, requestedAt }
      const until = later(settledMs)
      await store.insert({ ...erasure, visitor, until }, later(leaseMs))
      await endSessions({ erasureId: erasure.erasureId, visitor, until })
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
        if (due.stage !== 'finished') await steps[due.stage](due)
      }
    },
  }
}
