import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createRounds } from '../concurrency/rounds.ts'
import { unavailable } from '../errors.ts'
import type { EventLog } from '../log/event-log.ts'
import type { SessionEndType } from '../log/log-events.ts'
import { operationKeys } from '../log/operation-keys.ts'
import type { Subscriptions } from '../log/subscriptions.ts'
import type { Session } from '../store/sessions.ts'
import type { SessionEnd, VisitorAccess } from './visitor-access.ts'

export interface SessionWatch {
  /** Looks at the next part of them; at every one within `checkSteps` calls. */
  checkSome(): Promise<void>
  /** Looks at those whose last known grant has ended. */
  checkExpired(): Promise<void>
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

/**
 * Ends the streams of sessions that are over. The end is an event in the log, written once by the process that sees it first,
 * and each stream ends after it. A stream to which the log does not bring the end is ended by its own core.
 */
export function createSessionWatch(dependencies: {
  access: Pick<VisitorAccess, 'endOf' | 'isStill'>
  log: EventLog
  subscriptions: Pick<Subscriptions, 'observe' | 'sessionIsOver'>
  bus: Bus
  logger: Logger
  now: () => number
  checkSteps?: number
}): SessionWatch {
  const { access, log, subscriptions, bus, logger, now, checkSteps = 1 } = dependencies
  const watched = new Map<string, { session: Session; streams: number; expiresAt: number }>()

  const nextPart = createRounds(() => watched.keys(), checkSteps)

  async function check(sessionId: string) {
    const entry = watched.get(sessionId)
    if (!entry) return
    try {
      const { end, grantExpiresAt } = await access.endOf(sessionId)
      if (!grantExpiresAt) return subscriptions.sessionIsOver(sessionId, 'session.revoked')
      entry.expiresAt = grantExpiresAt.getTime()
      if (end) await writeEnd(entry.session, end)
    } catch (error) {
      // It is looked at again within seconds.
      logger.warn({ reason: (error as Error).name }, 'session state not read')
    }
  }

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

  function add(session: Session) {
    const entry = watched.get(session.sessionId)
    if (entry) entry.streams += 1
    else watched.set(session.sessionId, { session, streams: 1, expiresAt: session.grantExpiresAt.getTime() })
    // The session may have changed between its authorisation and now.
    if (!access.isStill(session)) void check(session.sessionId)
  }

  function remove({ sessionId }: Session) {
    const entry = watched.get(sessionId)
    if (!entry) return
    entry.streams -= 1
    if (entry.streams === 0) watched.delete(sessionId)
  }

  function checkChanged(ids: string[]) {
    if (watched.size === 0) return
    const named = new Set(ids)
    const concerned = [...watched.values()].filter(
      ({ session }) =>
        named.has(session.sessionId) || named.has(session.connectionId) || named.has(session.publicSiteKey),
    )
    void checkMany(concerned.map(({ session }) => session.sessionId))
  }

  subscriptions.observe({ opened: ({ session }) => add(session), ended: ({ session }) => remove(session) })
  bus.on('changed', checkChanged)
  bus.on('gap', () => void checkMany([...watched.keys()]))

  return {
    checkSome: () => checkMany(nextPart()),

    checkExpired: () => checkMany([...watched].flatMap(([id, { expiresAt }]) => (expiresAt <= now() ? [id] : []))),
  }
}
