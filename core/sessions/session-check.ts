import { setTimeout as delay } from 'node:timers/promises'
import { createJobs, createRounds } from '../concurrency/job.ts'
import { type Core, perCore } from '../core.ts'
import { logFailure, ServiceError, unavailable } from '../errors.ts'
import { logOf } from '../log/event-log.ts'
import { operationKeys, type SessionEndType } from '../log-event.ts'
import type { StreamSession } from '../streams/model.ts'
import { streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import type { SessionEnd } from './model.ts'
import { visitorAccessOf } from './visitor-access.ts'

const endTypes: Record<SessionEnd, SessionEndType> = {
  expired: 'session.expired',
  revoked: 'session.revoked',
  banned: 'visitor.banned',
  disabled: 'connection.disabled',
  closed: 'session.closed',
}

/** Time limit for writing an end event. Then the streams of the session end without it. */
const endWriteMs = 400

const minPart = 100

interface Watched {
  session: StreamSession
  streams: number
  expiresAt: number
  /** Number of wake-ups. The streams continue only after a check that began after the last wake-up. */
  changes: number
  /** True while the streams send nothing, because no check has succeeded yet. */
  isHeld: boolean
}

const checkEveryMs = 250
/** Number of `checkSome` calls that read each session with an open stream once. */
const checkSteps = 60
const expiryEveryMs = 500

export function sessionJobs(core: Core) {
  const { checkSome, checkDue } = sessionCheckOf(core)
  return createJobs(core, {
    'check of sessions': [checkEveryMs, checkSome],
    'expiry of sessions': [expiryEveryMs, checkDue],
  })
}

/**
 * Ends the streams of sessions whose requests are refused. The end of a session is an event in the
 * log. The first core that detects the end writes this event once. A refusal that can be undone has
 * no event: the core closes the stream, and the next request returns the reason. An operator can
 * undo the refusal of an origin or an installation, and a renewal can undo the refusal of an
 * expired grant. After a wake-up, the affected streams send nothing until the core has read the
 * change. So the streams of an ended session get no event after the end event.
 */
export const sessionCheckOf = perCore((core) => {
  const { bus, logger, now } = core
  const access = visitorAccessOf(core)
  const subscriptions = streamSubscriptionsOf(core)
  const watched = new Map<string, Watched>()
  /** Watched sessions by the ids of the session, its connection and its site, whose changes concern them. */
  const concerned = new Map<string, Set<Watched>>()
  const checking = new Set<Promise<void>>()

  const nextPart = createRounds(() => watched.keys(), checkSteps, minPart)

  async function check(sessionId: string) {
    const entry = watched.get(sessionId)
    if (!entry) return
    const { changes } = entry
    try {
      const { end, refused, grantExpiresAt } = await access.endOf(sessionId)
      if (!grantExpiresAt) return subscriptions.endSession(sessionId, 'session.revoked')
      entry.expiresAt = grantExpiresAt.getTime()
      if (end) await writeEnd(entry.session, end)
      else if (refused) subscriptions.refuseSession(sessionId, new ServiceError(refused))
      else if (entry.changes === changes && entry.isHeld) {
        entry.isHeld = false
        subscriptions.release(sessionId)
      }
    } catch (error) {
      logFailure(logger, 'read of session state failed; retrying within seconds')(error)
    }
  }

  /** Writes the end to the log. Ends the streams on this core even if the write fails. */
  async function writeEnd({ sessionId, conversationId }: StreamSession, end: SessionEnd) {
    const type = endTypes[end]
    const operationKey = operationKeys.session(sessionId, type)
    const written = new AbortController()
    const writing = logOf(core).append({ conversationId, type, sessionId, operationKey, inputHash: type })
    const timeout = delay(endWriteMs, undefined, { signal: written.signal }).then(() => Promise.reject(unavailable()))
    try {
      const { event } = await Promise.race([writing, timeout])
      subscriptions.endSession(sessionId, type, event)
    } catch (error) {
      logFailure(logger, 'writing the end event of a session failed; ending its streams on this core')(error)
      subscriptions.endSession(sessionId, type)
    } finally {
      written.abort()
    }
  }

  const checkMany = async (sessionIds: string[]) => void (await Promise.all(sessionIds.map(check)))

  /** Stops sending on the streams of a session until its state is read. */
  function holdAndCheck(entry: Watched) {
    const { sessionId } = entry.session
    entry.changes += 1
    entry.isHeld = true
    subscriptions.hold(sessionId)
    const running = check(sessionId).finally(() => checking.delete(running))
    checking.add(running)
  }

  function watch(session: StreamSession) {
    const entry = { session, streams: 0, expiresAt: session.grantExpiresAt.getTime(), changes: 0, isHeld: false }
    watched.set(session.sessionId, entry)
    for (const id of idsOf(session)) concerned.set(id, (concerned.get(id) ?? new Set()).add(entry))
    return entry
  }

  function add(session: StreamSession) {
    const entry = watched.get(session.sessionId) ?? watch(session)
    entry.streams += 1
    // If the state of the session changed after its authorization, the stream missed the wake-up.
    if (entry.isHeld || !access.isUnchanged(session)) holdAndCheck(entry)
  }

  function remove({ sessionId }: StreamSession) {
    const entry = watched.get(sessionId)
    if (!entry) return
    entry.streams -= 1
    if (entry.streams > 0) return
    watched.delete(sessionId)
    for (const id of idsOf(entry.session)) {
      const entries = concerned.get(id)
      entries?.delete(entry)
      if (entries?.size === 0) concerned.delete(id)
    }
  }

  subscriptions.observe({ opened: ({ session }) => add(session), ended: ({ session }) => remove(session) })
  bus.on('changed', (ids) => new Set(ids.flatMap((id) => [...(concerned.get(id) ?? [])])).forEach(holdAndCheck))
  bus.on('gap', () => void checkMany([...watched.keys()]))

  return {
    /** Resolves when the checks of changed sessions that run now have ended. */
    settled: async (): Promise<void> => void (await Promise.all(checking)),
    /** Checks one part of the sessions with an open stream. `checkSteps` calls check all of them. */
    checkSome: () => checkMany(nextPart()),
    /** Checks the sessions whose last known grant has expired or whose last check failed. */
    checkDue: () =>
      checkMany([...watched].flatMap(([id, { expiresAt, isHeld }]) => (isHeld || expiresAt <= now() ? [id] : []))),
  }
})

const idsOf = ({ sessionId, connectionId, publicSiteKey }: StreamSession) => [sessionId, connectionId, publicSiteKey]
