import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Bans } from '../bans/bans.ts'
import { ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import { field, text, validate } from '../rules.ts'
import type { Grants } from '../sessions/grants.ts'
import {
  type GrantLifetimes,
  type GrantTimes,
  grantTimes,
  type Issued,
  type Session,
  type SessionContent,
  storedTimes,
  type VisitorCredentials,
} from '../sessions/model.ts'
import type { SessionContents } from '../sessions/session-content.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Directory, VisitorAccess } from '../sessions/visitor-access.ts'
import { parseEventId } from '../streams/replay-window.ts'

export interface Renewals {
  /**
   * Issues a new grant for a live session. The grant of the request may have expired (contract,
   * section 2). Errors: `GrantInvalid` if the token is invalid or belongs to another session;
   * `ValidationFailed`; those of `VisitorAccess.authorize` (except `GrantExpired`) and of
   * `Idempotency.once`.
   */
  renew(request: {
    credentials: VisitorCredentials
    sessionId: string
    renewalToken: string
    lastSeenEventId?: string
    /** The client's IP address, if the gateway knows it. */
    clientAddress?: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
}

interface RenewalsDependencies {
  store: Pick<SessionStore, 'renew' | 'extend'>
  bans: Pick<Bans, 'followAddress'>
  contents: SessionContents
  directory: Pick<Directory, 'sessions'>
  access: VisitorAccess
  grants: Pick<Grants, 'isRenewalToken'>
  idempotency: Idempotency
  /** Settings in seconds. */
  settings: GrantLifetimes & { idempotencyRetention: number }
  now: () => number
}

/** Renews grants with a rotating token (contract, section 2). */
export function createRenewals(dependencies: RenewalsDependencies): Renewals {
  const { store, contents, directory, access, grants, bans, idempotency, settings, now } = dependencies

  /**
   * Rotates the renewal token. A renewal with the previous token returns the current token. So all
   * tabs of a duplicated session get the same token. The previous token stays valid until its grant
   * expires. If that grant has already expired, the previous token stays valid until the new grant
   * expires. This covers a lost response and duplicated tabs that slept too.
   *
   * If the process of an operation died after the rotation, a repeat of that operation may use the
   * previous token at any time.
   */
  async function rotate(
    sessionId: string,
    renewalToken: string,
    operation: string,
  ): Promise<{ session: Session; grant: GrantTimes & { generation: number } }> {
    const session = await access.live(sessionId)
    const { generation, previousUntil, operation: rotatedBy } = session.renewal
    const times = grantTimes(now(), settings, session.endsAt)
    const ends = storedTimes(times)

    if (grants.isRenewalToken(renewalToken, sessionId, generation)) {
      const isExpired = session.grantExpiresAt.getTime() <= now()
      const rotation = { previousUntil: isExpired ? ends.grantExpiresAt : session.grantExpiresAt, operation }
      if (await store.renew(sessionId, generation, ends, rotation)) {
        return { session, grant: { ...times, generation: generation + 1 } }
      }
      return rotate(sessionId, renewalToken, operation)
    }
    const isPrevious = generation > 0 && grants.isRenewalToken(renewalToken, sessionId, generation - 1)
    const isValid = isPrevious && (previousUntil.getTime() > now() || rotatedBy === operation)
    if (!isValid) throw new ServiceError(ErrorCode.GRANT_INVALID)
    if (await store.extend(sessionId, generation, ends)) return { session, grant: { ...times, generation } }
    return rotate(sessionId, renewalToken, operation)
  }

  return {
    async renew({ credentials, sessionId, renewalToken, lastSeenEventId, clientAddress, idempotencyKey }) {
      const visitor = await access.authorize(credentials, { expiredToo: true })
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
        run: async (operation): Promise<Issued> => {
          await bans.followAddress(visitor.session, clientAddress)
          const { session, grant } = await rotate(sessionId, renewalToken, operation)
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
