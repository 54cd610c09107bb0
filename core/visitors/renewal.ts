import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { followAddress } from '../bans/bans.ts'
import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { field, text, validate } from '../rules.ts'
import { grantsOf } from '../sessions/grants.ts'
import {
  type GrantTimes,
  grantTimes,
  type Issued,
  type Session,
  type SessionContent,
  storedTimes,
  type VisitorOperation,
} from '../sessions/model.ts'
import { lifetimesOf, sessionContentsOf } from '../sessions/session-content.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { directoryOf, oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { parseEventId } from '../streams/replay-window.ts'

/**
 * Issues a new grant for a live session. The grant of the request may have expired (contract,
 * section 2). Errors: `GrantInvalid` if the token is invalid or belongs to another session;
 * `ValidationFailed`; those of `VisitorAccess.authorize` (except `GrantExpired`) and of
 * `Idempotency.once`.
 */
export async function renewSession(
  core: Core,
  {
    credentials,
    sessionId,
    renewalToken,
    lastSeenEventId,
    clientAddress,
    idempotencyKey,
  }: VisitorOperation & {
    sessionId: string
    renewalToken: string
    lastSeenEventId?: string
    /** The client's IP address, if the gateway knows it. */
    clientAddress?: string
  },
): Promise<Repeatable<SessionContent>> {
  const { session: known } = await visitorAccessOf(core).authorize(credentials, { expiredToo: true })
  if (known.sessionId !== sessionId) throw new ServiceError(ErrorCode.GRANT_INVALID)
  validate(field('/renewalToken', renewalToken, text(1, 256)), field('/lastSeenEventId', lastSeenEventId, text(1, 256)))
  const contents = sessionContentsOf(core)
  const input = { sessionId, renewalToken, lastSeenEventId }
  const { content: issued, replayed } = await oncePerSession(
    core,
    'POST /sessions/renew',
    known,
    idempotencyKey,
    input,
    async (operation): Promise<Issued> => {
      await followAddress(core, known, clientAddress)
      const { session, grant } = await rotate(core, sessionId, renewalToken, operation)
      const replay = await contents.replayOf(session.conversationId, lastSeenEventId)
      const isReset = replay.state === 'reset_required' && parseEventId(lastSeenEventId ?? '') !== undefined
      return contents.issue(session, grant, { state: isReset ? 'reset' : 'continued', replay })
    },
  )
  directoryOf(core).sessions.invalidate(sessionId)
  return { content: await contents.contentOf(issued), replayed }
}

/**
 * Rotates the renewal token. A renewal with the previous token returns the current token, so that all
 * tabs of a duplicated session get the same one. The previous token stays valid until its grant expires.
 * If its grant has expired already, the token stays valid until the new grant expires. This covers a lost
 * response and duplicated tabs that slept too. If the process of an operation died after the rotation, a
 * repeat of the operation may use the previous token at any time.
 */
async function rotate(
  core: Core,
  sessionId: string,
  renewalToken: string,
  operation: string,
): Promise<{ session: Session; grant: GrantTimes & { generation: number } }> {
  const session = await visitorAccessOf(core).live(sessionId)
  const { generation, previousUntil, operation: rotatedBy } = session.renewal
  const times = grantTimes(core.now(), lifetimesOf(core), session.endsAt)
  const ends = storedTimes(times)

  if (grantsOf(core).isRenewalToken(renewalToken, sessionId, generation)) {
    const isExpired = session.grantExpiresAt.getTime() <= core.now()
    const rotation = { previousUntil: isExpired ? ends.grantExpiresAt : session.grantExpiresAt, operation }
    if (await sessionStoreOf(core).renew(sessionId, generation, ends, rotation))
      return { session, grant: { ...times, generation: generation + 1 } }
    return rotate(core, sessionId, renewalToken, operation)
  }
  const isPrevious = generation > 0 && grantsOf(core).isRenewalToken(renewalToken, sessionId, generation - 1)
  const isValid = isPrevious && (previousUntil.getTime() > core.now() || rotatedBy === operation)
  if (!isValid) throw new ServiceError(ErrorCode.GRANT_INVALID)
  if (await sessionStoreOf(core).extend(sessionId, generation, ends))
    return { session, grant: { ...times, generation } }
  return rotate(core, sessionId, renewalToken, operation)
}
