import type { UpdateFilter } from 'mongodb'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { isOriginAllowed } from '../../contract/origins.ts'
import { byKey } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { Operation } from '../idempotency/idempotency.ts'
import type { StreamSession } from '../streams/model.ts'
import { announcedMaxAgeMs, liveCacheOf } from '../wakeups/live-cache.ts'
import type { Connection, Installation } from '../workspaces/model.ts'
import { siteDirectoryOf } from '../workspaces/workspaces.ts'
import { grantsOf } from './grants.ts'
import type { Session, SessionEnd, Visitor, VisitorCredentials } from './model.ts'
import { type SessionDocument, sessionStoreOf, updateActive } from './session-store.ts'

export const sessionEndCodes: Record<SessionEnd, PublicErrorCode> = {
  expired: 'SessionExpired',
  revoked: 'SessionRevoked',
  banned: 'VisitorBanned',
  disabled: 'ConnectionDisabled',
  closed: 'SessionClosed',
}

/** Cached data of sites and sessions for authorization. It knows all changes older than a second. */
export const directoryOf = perCore((core) => ({
  ...siteDirectoryOf(core),
  sessions: liveCacheOf<Session>(core, {
    maxEntries: 100_000,
    // A renewal is in the grant itself, and a refusal for missing consent reads the session again.
    maxAgeMs: announcedMaxAgeMs,
    loadMany: async (ids) => byKey(await sessionStoreOf(core).find(ids), ({ sessionId }) => sessionId),
  }),
}))

export const visitorAccessOf = perCore((core) => {
  const { now } = core
  const directory = directoryOf(core)

  /**
   * `grantEnd` is the end of a grant in milliseconds. Another core may have issued it after the session
   * was cached, so the session does not expire before.
   */
  function classifyEnd(session: Session, connection: Connection | undefined, grantEnd = 0) {
    const expiry = Math.max(session.renewableUntil.getTime(), grantEnd)
    if (session.status === 'active' && Math.min(expiry, session.endsAt.getTime()) <= now()) return 'expired'
    if (session.status === 'revoked' || session.status === 'banned') return session.status
    // The connection is or was disabled since the session began.
    if (connection?.status !== 'enabled' || session.connectionVersion !== connection.statusVersion) return 'disabled'
    return session.status === 'closed' ? 'closed' : undefined
  }

  /** Whether the site allows the session. An operator can allow it again, and the session then continues. */
  const isSiteAllowed = ({ origin }: Pick<Session, 'origin'>, installation: Installation | undefined) =>
    installation?.enabled === true && isOriginAllowed(origin, installation.origins)

  /**
   * Reads a live session from the store. Its grant may have expired. Errors: GrantInvalid for an
   * unknown session; the error in `sessionEndCodes` for an ended one.
   */
  async function live(sessionId: string) {
    const session = await directory.sessions.reload(sessionId)
    if (!session) throw new ServiceError('GrantInvalid')
    const end = classifyEnd(session, await directory.connections.get(session.connectionId))
    if (end) throw new ServiceError(sessionEndCodes[end])
    return session
  }

  return {
    /**
     * Authorizes a visitor anew for each request (contract, section 1). Errors: GrantMissing,
     * GrantInvalid, OriginNotAllowed, OriginMismatch, SessionExpired, SessionRevoked, VisitorBanned,
     * ConnectionDisabled, SessionClosed, GrantExpired.
     *
     * - `resumed`: for a stream that was opened before its grant expired. The expired grant is accepted
     *   while a later grant of the session is valid. An ended session is accepted too, so that the
     *   stream gets the event of its end.
     * - `closedToo`: for a repeated operation whose first run may have closed the session. The session
     *   is read from the store, and the grant must not have expired.
     * - `expiredToo`: for a renewal. The expired grant is accepted while the session is live.
     */
    async authorize(
      { accessGrant, origin }: VisitorCredentials,
      { resumed = false, closedToo = false, expiredToo = false } = {},
    ): Promise<Visitor> {
      if (accessGrant === '') throw new ServiceError('GrantMissing')
      const claims = await grantsOf(core).verify(accessGrant)
      const grantIssuedAt = new Date(claims.iat * 1000)
      const grantExpiresAt = new Date(claims.exp * 1000)
      const hasExpired = grantExpiresAt.getTime() <= now()
      // Another core may have renewed the session, and renewals send no wake-ups.
      const session = await (closedToo || resumed || hasExpired
        ? directory.sessions.reload(claims.sid)
        : directory.sessions.get(claims.sid))
      if (!session) throw new ServiceError('GrantInvalid')
      const [installation, connection] = await Promise.all([
        directory.installations.get(session.publicSiteKey),
        directory.connections.get(session.connectionId),
      ])
      if (!installation?.enabled || !isOriginAllowed(origin, installation.origins))
        throw new ServiceError('OriginNotAllowed')
      if (claims.org !== origin) throw new ServiceError('OriginMismatch')
      const end = classifyEnd(session, connection, grantExpiresAt.getTime())
      const mayBeClosed = closedToo && end === 'closed' && !hasExpired
      if (end && !resumed && !mayBeClosed) throw new ServiceError(sessionEndCodes[end])
      const isRefused = resumed ? !end && session.grantExpiresAt.getTime() <= now() : hasExpired && !expiredToo
      if (isRefused) throw new ServiceError('GrantExpired')
      return { session, installation, grantIssuedAt, grantExpiresAt }
    },

    /** Whether an authorized session has not ended and its cached state is unchanged. Does not read the store. */
    isUnchanged(session: StreamSession) {
      const { sessionId, connectionId, publicSiteKey } = session
      const current = directory.sessions.peek(sessionId)
      return (
        current === session &&
        classifyEnd(current, directory.connections.peek(connectionId)) === undefined &&
        isSiteAllowed(session, directory.installations.peek(publicSiteKey))
      )
    },

    /**
     * Reads from the store whether requests of a session are refused. `end` is set if it has ended for
     * good. `refused` is set if its site refuses it or if its latest grant has expired, which an operator
     * or a renewal can undo. `grantExpiresAt` is absent if the session does not exist.
     */
    async endOf(sessionId: string): Promise<{ end?: SessionEnd; refused?: PublicErrorCode; grantExpiresAt?: Date }> {
      const session = await directory.sessions.reload(sessionId)
      if (!session) return { end: 'closed' }
      const { connectionId, publicSiteKey, grantExpiresAt } = session
      // Periodic checks must not count as a use of cached state, so that a core with open streams rests.
      const [connection, installation] = await Promise.all([
        directory.connections.reload(connectionId),
        directory.installations.reload(publicSiteKey),
      ])
      const expired = grantExpiresAt.getTime() <= now() ? 'GrantExpired' : undefined
      const refused = isSiteAllowed(session, installation) ? expired : 'OriginNotAllowed'
      return { end: classifyEnd(session, connection), refused, grantExpiresAt }
    },

    live,
    /** Throws the error for the end of a session that a write has found ended. */
    async rejectEnded(sessionId: string) {
      await live(sessionId)
      throw new ServiceError('SessionClosed')
    },
  }
})

/** Changes an active session. Errors: those of `rejectEnded`, if the session is not active. */
export async function changeLive(core: Core, sessionId: string, change: UpdateFilter<SessionDocument>) {
  if (!(await updateActive(core, sessionId, change))) await visitorAccessOf(core).rejectEnded(sessionId)
}

/** Runs an operation of a session once. A repeat returns the first result. Errors: those of `Idempotency.once`. */
export function oncePerSession<R>(
  { config, idempotency }: Core,
  route: string,
  { sessionId }: Pick<Session, 'sessionId'>,
  key: string,
  input: unknown,
  run: Operation<R>['run'],
) {
  const keptFor = config.IDEMPOTENCY_RETENTION_SECONDS
  return idempotency.once({ scope: [route, sessionId], sessionId, key, input, keptFor, run })
}
