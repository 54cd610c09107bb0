import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { parseEventId } from '../log/replay-window.ts'
import { field, text, validate } from '../rules.ts'
import type { Directory } from '../workspaces/directory.ts'
import type { Grants } from './grants.ts'
import {
  type GrantTimes,
  grantTimes,
  type Issued,
  type Repeatable,
  type SessionContent,
  type SessionContents,
} from './session-content.ts'
import type { Session, SessionStore } from './session-store.ts'
import type { VisitorAccess, VisitorCredentials } from './visitor-access.ts'

export interface Renewals {
  /**
   * Issues a new grant for a live session (contract, section 2). Errors: those of
   * VisitorAccess.authorize, `GrantInvalid` for another session or an invalid token,
   * ValidationFailed, and those of Idempotency.once.
   */
  renew(request: {
    credentials: VisitorCredentials
    sessionId: string
    renewalToken: string
    lastSeenEventId?: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
}

export interface RenewalsDependencies {
  store: Pick<SessionStore, 'renew' | 'extend'>
  contents: SessionContents
  directory: Directory
  access: VisitorAccess
  grants: Pick<Grants, 'isRenewalToken'>
  idempotency: Idempotency
  /** Seconds. */
  settings: { grantLifetime: number; idempotencyRetention: number }
  now: () => number
}

/** Renews grants with a rotating token (contract, section 2). */
export function createRenewals(dependencies: RenewalsDependencies): Renewals {
  const { store, contents, directory, access, grants, idempotency, settings, now } = dependencies

  /**
   * Rotates the renewal token. The previous token stays valid until its grant expires and returns
   * the current one. So all tabs of a duplicated session end with the same token.
   */
  async function rotate(
    sessionId: string,
    renewalToken: string,
  ): Promise<{ session: Session; grant: GrantTimes & { generation: number } }> {
    const session = await access.live(sessionId)
    const { generation, previousUntil } = session.renewal
    const times = grantTimes(now(), settings.grantLifetime, session.endsAt)
    const grantExpiresAt = new Date(times.expiresAt * 1000)

    if (grants.isRenewalToken(renewalToken, sessionId, generation)) {
      if (await store.renew(sessionId, generation, { grantExpiresAt, previousUntil: session.grantExpiresAt })) {
        return { session, grant: { ...times, generation: generation + 1 } }
      }
      return rotate(sessionId, renewalToken)
    }
    const isPrevious = generation > 0 && grants.isRenewalToken(renewalToken, sessionId, generation - 1)
    if (!isPrevious || previousUntil.getTime() <= now()) throw new ServiceError(ErrorCode.GRANT_INVALID)
    if (await store.extend(sessionId, generation, grantExpiresAt)) return { session, grant: { ...times, generation } }
    return rotate(sessionId, renewalToken)
  }

  return {
    async renew({ credentials, sessionId, renewalToken, lastSeenEventId, idempotencyKey }) {
      const visitor = await access.authorize(credentials)
      if (visitor.session.sessionId !== sessionId) throw new ServiceError(ErrorCode.GRANT_INVALID)
      validate(
        field('/renewalToken', renewalToken, text(1, 256)),
        field('/lastSeenEventId', lastSeenEventId, text(1, 256)),
      )
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/renew', sessionId],
        sessionId,
        key: idempotencyKey,
        input: { sessionId, renewalToken, lastSeenEventId },
        keptFor: settings.idempotencyRetention,
        run: async (): Promise<Issued> => {
          const { session, grant } = await rotate(sessionId, renewalToken)
          const replay = await contents.replayOf(session.conversationId, lastSeenEventId)
          const known = lastSeenEventId !== undefined && parseEventId(lastSeenEventId) !== undefined
          const state = known && replay.state === 'reset_required' ? 'reset' : 'continued'
          return contents.issue(session, grant, { state, replay })
        },
      })
      directory.sessions.invalidate(sessionId)
      return { content: await contents.contentOf(result), replayed }
    },
  }
}
