import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createRounds } from '../concurrency/rounds.ts'
import { ServiceError, unavailable } from '../errors.ts'
import type { EventLog } from '../log/event-log.ts'
import type { SessionEndType } from '../log/model.ts'
import { operationKeys } from '../log/operation-keys.ts'
import type { Subscriptions } from '../log/subscriptions.ts'
import type { Session } from './session-store.ts'
import type { SessionEnd, VisitorAccess } from './visitor-access.ts'

export interface SessionWatch {
  /** Checks the next part of the sessions with an open stream; all within `checkSteps` calls. */
  checkSome(): Promise<void>
  /** Checks the sessions whose last known grant has ended, and those whose last check failed. */
  checkDue(): Promise<void>
}

const endTypes: Record<SessionEnd, SessionEndType> = {
  expired: 'session.expired',
  revoked: 'session.revoked',
  banned: 'visitor.banned',
  disabled: 'connection.disabled',
  closed: 'session.closed',
}

/** How long the log has to take the end of a session before the streams end without it, in milliseconds. */
const endWriteMs = 400

interface Watched {
  session: Session
  streams: number
  expiresAt: number
  /** Counts the changes heard of. Streams are released only by a check that began after the last one. */
  changes: number
  /** The streams are held until a check succeeds. */
  isHeld: boolean
}

/**
 * Ends the streams of sessions whose requests are refused. The end of a session is an event in the log, written once by
 * whichever core sees it first. A refusal that an operator can take back (the origin, the installation) leaves no event:
 * the stream is closed, and the next request says why. From the moment this core hears of a change until it knows
 * what changed, it holds the streams concerned, so that nothing later is sent on them.
 */
export function createSessionWatch(dependencies: {
  access: Pick<VisitorAccess, 'endOf' | 'isStill'>
  log: EventLog
  subscriptions: Omit<Subscriptions, 'open' | 'resume' | 'close' | 'checkSome'>
  bus: Bus
  logger: Logger
  now: () => number
  checkSteps?: number
}): SessionWatch {
  const { access, log, subscriptions, bus, logger, now, checkSteps = 1 } = dependencies
  const watched = new Map<string, Watched>()

  const nextPart = createRounds(() => watched.keys(), checkSteps)

  async function check(sessionId: string) {
    const entry = watched.get(sessionId)
    if (!entry) return
    const { changes } = entry
    try {
      const { end, refused, grantExpiresAt } = await access.endOf(sessionId)
      if (!grantExpiresAt) return subscriptions.sessionIsOver(sessionId, 'session.revoked')
      entry.expiresAt = grantExpiresAt.getTime()
      if (end) await writeEnd(entry.session, end)
      else if (refused) subscriptions.sessionRefused(sessionId, new ServiceError(refused))
      else if (entry.changes === changes && entry.isHeld) {
        entry.isHeld = false
        subscriptions.release(sessionId)
      }
    } catch (error) {
      logger.warn({ reason: (error as Error).name }, 'session state not read; retrying within seconds')
    }
  }

  /** Writes the end into the log and ends the streams here, even when it cannot be written. */
  async function writeEnd({ sessionId, conversationId }: Session, end: SessionEnd) {
    const type = endTypes[end]
    const operationKey = operationKeys.session(sessionId, type)
    const written = new AbortController()
    const writing = log.append({ conversationId, type, sessionId, operationKey, inputHash: type })
    const tooLate = delay(endWriteMs, undefined, { signal: written.signal }).then(() => Promise.reject(unavailable()))
    try {
      const { event } = await Promise.race([writing, tooLate])
      subscriptions.sessionIsOver(sessionId, type, event)
    } catch (error) {
      logger.warn({ reason: (error as Error).name }, 'session end not written; ending its streams here')
      subscriptions.sessionIsOver(sessionId, type)
    } finally {
      written.abort()
    }
  }

  async function checkMany(sessionIds: string[]) {
    await Promise.all(sessionIds.map(check))
  }

  /** Holds the streams of a session, and finds out whether they may go on. */
  function suspect(sessionId: string, entry: Watched) {
    entry.changes += 1
    entry.isHeld = true
    subscriptions.hold(sessionId)
    void check(sessionId)
  }

  function add(session: Session) {
    const { sessionId, grantExpiresAt } = session
    const expiresAt = grantExpiresAt.getTime()
    const entry = watched.get(sessionId) ?? { session, streams: 0, expiresAt, changes: 0, isHeld: false }
    entry.streams += 1
    watched.set(sessionId, entry)
    // A change between its authorisation and now was not told to its stream.
    if (entry.isHeld || !access.isStill(session)) suspect(sessionId, entry)
  }

  function remove({ sessionId }: Session) {
    const entry = watched.get(sessionId)
    if (!entry) return
    entry.streams -= 1
    if (entry.streams === 0) watched.delete(sessionId)
  }

  function checkChanged(ids: string[]) {
    if (watched.size === 0 || ids.length === 0) return
    const named = new Set(ids)
    for (const [sessionId, entry] of watched) {
      const { connectionId, publicSiteKey } = entry.session
      if (named.has(sessionId) || named.has(connectionId) || named.has(publicSiteKey)) suspect(sessionId, entry)
    }
  }

  subscriptions.observe({ opened: ({ session }) => add(session), ended: ({ session }) => remove(session) })
  bus.on('changed', checkChanged)
  bus.on('gap', () => void checkMany([...watched.keys()]))

  return {
    checkSome: () => checkMany(nextPart()),

    checkDue: () =>
      checkMany([...watched].flatMap(([id, { expiresAt, isHeld }]) => (isHeld || expiresAt <= now() ? [id] : []))),
  }
}
