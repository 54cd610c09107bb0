import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Directory } from '../workspaces/directory.ts'
import type { Connection, Installation } from '../workspaces/workspace-store.ts'
import type { Grants } from './grants.ts'
import { isOriginAllowed } from './origins.ts'
import type { Session } from './session-store.ts'

/** Credentials that the browser sends. */
export interface VisitorCredentials {
  accessGrant: string
  origin: string
}

export interface Visitor {
  session: Session
  installation: Installation
  /** Start and end of the grant in the request. */
  grantIssuedAt: Date
  grantExpiresAt: Date
}

export interface VisitorAccess {
  /**
   * Authorizes a visitor anew for each request (contract, section 1). `resumed` is for a stream
   * that was opened in time: a grant that has expired since is accepted while its session is live.
   * `closedToo` is for the repeat of an operation that may have closed the session itself. It
   * reads the store, and the grant must not have expired. Errors: GrantMissing, GrantInvalid,
   * OriginNotAllowed, OriginMismatch, SessionExpired, SessionRevoked, VisitorBanned,
   * ConnectionDisabled, SessionClosed.
   */
  authorize(credentials: VisitorCredentials, options?: { resumed?: boolean; closedToo?: boolean }): Promise<Visitor>
  /** Whether the cached state of an authorized session is unchanged. Does not read the store. */
  isUnchanged(session: Session): boolean
  /**
   * Reads from the store whether requests of a session are refused. `end`: the session has ended
   * for good. `refused`: its site refuses it, which an operator can undo. Without `grantExpiresAt`
   * the session does not exist.
   */
  endOf(sessionId: string): Promise<{
    end?: SessionEnd
    refused?: ErrorCode
    grantExpiresAt?: Date
  }>
  /** Reads a live session from the store. Errors: GrantInvalid, and those of an ended session. */
  live(sessionId: string): Promise<Session>
}

export type SessionEnd = 'expired' | 'revoked' | 'banned' | 'disabled' | 'closed'

/** Error codes of an ended session. */
export const sessionEndCodes: Record<SessionEnd, ErrorCode> = {
  expired: ErrorCode.SESSION_EXPIRED,
  revoked: ErrorCode.SESSION_REVOKED,
  banned: ErrorCode.VISITOR_BANNED,
  disabled: ErrorCode.CONNECTION_DISABLED,
  closed: ErrorCode.SESSION_CLOSED,
}

export function createVisitorAccess({
  directory,
  grants,
  now,
}: {
  directory: Directory
  grants: Grants
  now: () => number
}): VisitorAccess {
  function classifyEnd(
    session: Session,
    connection: Connection | undefined,
    expiresAt = session.grantExpiresAt,
  ): SessionEnd | undefined {
    if (session.status === 'active' && Math.min(expiresAt.getTime(), session.endsAt.getTime()) <= now())
      return 'expired'
    if (session.status === 'revoked' || session.status === 'banned') return session.status
    if (!isConnected(session, connection)) return 'disabled'
    return session.status === 'closed' ? 'closed' : undefined
  }

  /**
   * Whether the site allows the session. An operator can undo a refusal, and the session continues.
   */
  function isSiteAllowed(session: Session, installation: Installation | undefined): installation is Installation {
    return installation?.enabled === true && isOriginAllowed(session.origin, installation.origins)
  }

  return {
    async authorize({ accessGrant, origin }, { resumed = false, closedToo = false } = {}) {
      if (accessGrant === '') throw new ServiceError(ErrorCode.GRANT_MISSING)
      const claims = await grants.verify(accessGrant)
      const session = await (closedToo || resumed
        ? directory.sessions.reload(claims.sid)
        : directory.sessions.get(claims.sid))
      if (!session) throw new ServiceError(ErrorCode.GRANT_INVALID)
      const [installation, connection] = await Promise.all([
        directory.installations.get(session.publicSiteKey),
        directory.connections.get(session.connectionId),
      ])
      if (!installation?.enabled || !isOriginAllowed(origin, installation.origins))
        throw new ServiceError(ErrorCode.ORIGIN_NOT_ALLOWED)
      if (claims.org !== origin) throw new ServiceError(ErrorCode.ORIGIN_MISMATCH)
      const grantIssuedAt = new Date(claims.iat * 1000)
      const grantExpiresAt = new Date(claims.exp * 1000)
      const visitor = { session, installation, grantIssuedAt, grantExpiresAt }
      const end = classifyEnd(session, connection, resumed ? session.grantExpiresAt : grantExpiresAt)
      const mayBeClosed = closedToo && end === 'closed' && grantExpiresAt.getTime() > now()
      if (end && !mayBeClosed) throw new ServiceError(sessionEndCodes[end])
      return visitor
    },

    isUnchanged(session) {
      const { sessionId, connectionId, publicSiteKey } = session
      return (
        directory.sessions.peek(sessionId) === session &&
        isConnected(session, directory.connections.peek(connectionId)) &&
        isSiteAllowed(session, directory.installations.peek(publicSiteKey))
      )
    },

    async endOf(sessionId) {
      const session = await directory.sessions.reload(sessionId)
      if (!session) return { end: 'closed' }
      const { connectionId, publicSiteKey, grantExpiresAt } = session
      const [connection, installation] = await Promise.all([
        directory.connections.get(connectionId),
        directory.installations.get(publicSiteKey),
      ])
      const end = classifyEnd(session, connection)
      const refused = isSiteAllowed(session, installation) ? undefined : ErrorCode.ORIGIN_NOT_ALLOWED
      return { end, refused, grantExpiresAt }
    },

    async live(sessionId) {
      const session = await directory.sessions.reload(sessionId)
      if (!session) throw new ServiceError(ErrorCode.GRANT_INVALID)
      const end = classifyEnd(session, await directory.connections.get(session.connectionId))
      if (end) throw new ServiceError(sessionEndCodes[end])
      return session
    },
  }
}

/**
 * Whether the connection was never disabled since the session began. Sessions of earlier versions
 * have no version.
 */
function isConnected({ connectionVersion }: Session, connection: Connection | undefined): boolean {
  return (
    connection?.status === 'enabled' &&
    (connectionVersion === undefined || connectionVersion === connection.statusVersion)
  )
}
