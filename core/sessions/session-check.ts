import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createRounds } from '../concurrency/job.ts'
import { ServiceError, unavailable } from '../errors.ts'
import type { EventLog } from '../log/event-log.ts'
import { operationKeys, type SessionEndType } from '../log-event.ts'
import type { StreamSession } from '../streams/model.ts'
import type { StreamSubscriptions } from '../streams/stream-subscriptions.ts'
import type { SessionEnd } from './model.ts'
import type { VisitorAccess } from './visitor-access.ts'

interface SessionCheck {
  /**
   * Checks the state of one part of the sessions with an open stream. `checkSteps` consecutive
   * calls check all of them.
   */
  checkSome(): Promise<void>
  /**
   * Checks the sessions whose last known grant has expired and the sessions whose last check
   * failed.
   */
  checkDue(): Promise<void>
  /** Resolves when the checks of changed sessions that run now have ended. */
  settled(): Promise<void>
}

const endTypes: Record<SessionEnd, SessionEndType> = {
  expired: 'session.expired',
  revoked: 'session.revoked',
  banned: 'visitor.banned',
  disabled: 'connection.disabled',
  closed: 'session.closed',
}

/**
 * Time limit in milliseconds for writing the end event of a session. After this time the streams
 * end although the event is not written.
 */
const endWriteMs = 400

interface Watched {
  session: StreamSession
  streams: number
  expiresAt: number
  /**
   * Number of wake-ups for this session. The streams continue only after a check that began after
   * the last wake-up.
   */
  changes: number
  /** True while the streams send nothing, because no check has succeeded yet. */
  isHeld: boolean
}

/**
 * Ends the streams of sessions whose requests are refused. The end of a session is an event in the
 * log. The first core that detects the end writes this event once. A refusal that can be undone has
 * no event: the core closes the stream, and the next request returns the reason. An operator can
 * undo the refusal of an origin or an installation, and a renewal can undo the refusal of an
 * expired grant. After a wake-up, the affected streams send nothing until the core has read the
 * change. So the streams of an ended session get no event after the end event.
 */
export function createSessionCheck(dependencies: {
  access: Pick<VisitorAccess, 'endOf' | 'isUnchanged'>
  log: Pick<EventLog, 'append' | 'drain'>
  subscriptions: Omit<StreamSubscriptions, 'open' | 'resume' | 'close' | 'checkSome'>
  bus: Bus
  logger: Logger
  now: () => number
  checkSteps?: number
}): SessionCheck {
  const { access, log, subscriptions, bus, logger, now, checkSteps = 1 } = dependencies
  const watched = new Map<string, Watched>()
  /** Running checks of changed sessions. */
  const checking = new Set<Promise<void>>()

  const nextPart = createRounds(() => watched.keys(), checkSteps)

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
      logger.warn({ reason: (error as Error).name }, 'read of session state failed; retrying within seconds')
    }
  }

  /** Writes the end to the log. Ends the streams on this core even if the write fails. */
  async function writeEnd({ sessionId, conversationId }: StreamSession, end: SessionEnd) {
    const type = endTypes[end]
    const operationKey = operationKeys.session(sessionId, type)
    const written = new AbortController()
    const writing = log.append({ conversationId, type, sessionId, operationKey, inputHash: type })
    const timeout = delay(endWriteMs, undefined, { signal: written.signal }).then(() => Promise.reject(unavailable()))
    try {
      const { event } = await Promise.race([writing, timeout])
      subscriptions.endSession(sessionId, type, event)
    } catch (error) {
      logger.warn(
        { reason: (error as Error).name },
        'writing the end event of a session failed; ending the streams of the session on this core',
      )
      subscriptions.endSession(sessionId, type)
    } finally {
      written.abort()
    }
  }

  async function checkMany(sessionIds: string[]) {
    await Promise.all(sessionIds.map(check))
  }

  /** Stops sending on the streams of a session until its state is read. */
  function holdAndCheck(sessionId: string, entry: Watched) {
    entry.changes += 1
    entry.isHeld = true
    subscriptions.hold(sessionId)
    const running = check(sessionId).finally(() => checking.delete(running))
    checking.add(running)
  }

  function add(session: StreamSession) {
    const { sessionId, grantExpiresAt } = session
    const expiresAt = grantExpiresAt.getTime()
    const entry = watched.get(sessionId) ?? { session, streams: 0, expiresAt, changes: 0, isHeld: false }
    entry.streams += 1
    watched.set(sessionId, entry)
    // If the state of the session changed after its authorization, the stream missed the wake-up.
    if (entry.isHeld || !access.isUnchanged(session)) holdAndCheck(sessionId, entry)
  }

  function remove({ sessionId }: StreamSession) {
    const entry = watched.get(sessionId)
    if (!entry) return
    entry.streams -= 1
    if (entry.streams === 0) watched.delete(sessionId)
  }

  function checkChanged(ids: string[]) {
    if (watched.size === 0 || ids.length === 0) return
    const changed = new Set(ids)
    for (const [sessionId, entry] of watched) {
      const { connectionId, publicSiteKey } = entry.session
      if (changed.has(sessionId) || changed.has(connectionId) || changed.has(publicSiteKey))
        holdAndCheck(sessionId, entry)
    }
  }

  subscriptions.observe({ opened: ({ session }) => add(session), ended: ({ session }) => remove(session) })
  bus.on('changed', checkChanged)
  bus.on('gap', () => void checkMany([...watched.keys()]))

  return {
    settled: async () => void (await Promise.all(checking)),

    checkSome: () => checkMany(nextPart()),

    checkDue: () =>
      checkMany([...watched].flatMap(([id, { expiresAt, isHeld }]) => (isHeld || expiresAt <= now() ? [id] : []))),
  }
}
