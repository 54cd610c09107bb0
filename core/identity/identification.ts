import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { followAddress, isSubjectBanned } from '../bans/bans.ts'
import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { grantsOf } from '../sessions/grants.ts'
import {
  grantTimes,
  type Identity,
  type Issued,
  type Session,
  type SessionContent,
  storedTimes,
  type VisitorOperation,
} from '../sessions/model.ts'
import { lifetimesOf, sessionContentsOf } from '../sessions/session-content.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { subjectIdOn } from '../sessions/visitor-ids.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { type Installation, requireCapability } from '../workspaces/model.ts'
import { consumeNonce, verifyAssertion } from './identity-assertions.ts'
import { latestSession, repeatReplacement, replaceSession } from './session-replacements.ts'
import { reconcileSubject } from './subjects.ts'

interface IdentityChange extends VisitorOperation {
  /** The client's IP address, if the gateway knows it. */
  clientAddress?: string
  /** The renewal token of the present session. Without it, an answer for this session has no token. */
  renewalToken?: string
}

/**
 * Additional errors: RouteNotAdvertised, IdentityAssertionInvalid, IdentityAssertionExpired,
 * IdentityAssertionReplayed, VisitorBanned.
 */
export async function identifyVisitor(
  core: Core,
  { credentials, assertion, clientAddress, renewalToken, idempotencyKey }: IdentityChange & { assertion: string },
): Promise<Repeatable<SessionContent>> {
  const { session, installation } = await visitorAccessOf(core).authorize(credentials, { closedToo: true })
  const { sessionId } = session
  const { content, replayed } = await oncePerSession(
    core,
    'POST /sessions/identify',
    session,
    idempotencyKey,
    { assertion },
    (operation) => identifyOnce(core, sessionId, installation, { assertion, clientAddress }, operation),
  )
  return { content: await answerTo(core, sessionId, renewalToken, content), replayed }
}

/** Additional errors: VisitorBanned. */
export async function clearIdentity(
  core: Core,
  { credentials, clientAddress, renewalToken, idempotencyKey }: IdentityChange,
): Promise<Repeatable<SessionContent>> {
  const visitor = await visitorAccessOf(core).authorize(credentials, { closedToo: true })
  const { session, installation, grantIssuedAt, grantExpiresAt } = visitor
  const { sessionId } = session
  async function clear(operation: string): Promise<Issued> {
    const current = await latestSession(core, sessionId)
    if (current.status === 'closed') return repeatReplacement(core, current, operation, installation)
    await visitorAccessOf(core).live(sessionId)
    const session = await followAddress(core, current, clientAddress)
    if (session.identity) return replaceSession(core, session, undefined, operation, installation)
    // The session keeps the grant that the request used.
    const grant = {
      issuedAt: grantIssuedAt.getTime() / 1000,
      expiresAt: grantExpiresAt.getTime() / 1000,
      renewableUntil: current.renewableUntil.getTime() / 1000,
      generation: current.renewal.generation,
    }
    return sessionContentsOf(core).issue(current, grant, { state: 'continued' })
  }
  const { content, replayed } = await oncePerSession(
    core,
    'DELETE /sessions/identify',
    session,
    idempotencyKey,
    {},
    clear,
  )
  return { content: await answerTo(core, sessionId, renewalToken, content), replayed }
}

async function identifyOnce(
  core: Core,
  sessionId: string,
  installation: Installation,
  { assertion, clientAddress }: { assertion: string; clientAddress?: string },
  operation: string,
): Promise<Issued> {
  const current = await latestSession(core, sessionId)
  if (current.status === 'closed') return repeatReplacement(core, current, operation, installation)
  await visitorAccessOf(core).live(sessionId)
  if (current.identity?.operation === operation) return refresh(core, current, current.identity)
  // Checked only now, so that an operation that succeeded before the capability was disabled can be repeated.
  requireCapability(installation, 'identity')
  const session = await followAddress(core, current, clientAddress)
  const identity = await verifiedIdentity(core, session, installation, assertion, operation)
  if (session.identity?.subjectId === identity.subjectId) return refresh(core, session, identity)
  await reconcileSubject(core, identity.subjectId)
  return replaceSession(core, session, identity, operation, installation)
}

/** Returns the identity of a valid and unused assertion. Otherwise throws and changes nothing. */
async function verifiedIdentity(
  core: Core,
  { workspaceId, connectionId, publicSiteKey }: Session,
  installation: Installation,
  assertion: string,
  operation: string,
): Promise<Identity> {
  const { nonce, endsAt, ...claims } = await verifyAssertion(core, assertion, installation)
  const subjectId = await subjectIdOn(core, connectionId, claims.externalSubject)
  if (await isSubjectBanned(core, workspaceId, claims.externalSubject)) throw new ServiceError(ErrorCode.VISITOR_BANNED)
  // The margin covers clock differences between cores.
  const expiresAt = new Date(endsAt.getTime() + nonceMarginMs)
  if (!(await consumeNonce(core, { publicSiteKey, nonce, operation, expiresAt }, new Date(core.now())))) {
    throw new ServiceError(ErrorCode.IDENTITY_ASSERTION_REPLAYED)
  }
  return { ...claims, subjectId, operation, verifiedAt: new Date(core.now()) }
}

/** Handles an assertion for the same visitor: keeps the session and issues a new grant. */
async function refresh(core: Core, session: Session, identity: Identity): Promise<Issued> {
  const { sessionId, endsAt, renewal } = session
  const times = grantTimes(core.now(), lifetimesOf(core), endsAt)
  if (!(await sessionStoreOf(core).refreshIdentity(sessionId, identity, storedTimes(times))))
    await visitorAccessOf(core).rejectEnded(sessionId)
  await wakeupsOf(core).stateChanged(sessionId)
  const grant = { ...times, generation: renewal.generation }
  return sessionContentsOf(core).issue({ ...session, identity }, grant, { state: 'continued' })
}

/**
 * Adds the credentials. A grant alone must not become a renewal token: the token is only in an
 * answer for a new session, or for a caller who has it.
 */
async function answerTo(core: Core, sessionId: string, renewalToken = '', issued: Issued): Promise<SessionContent> {
  const content = await sessionContentsOf(core).contentOf(issued)
  const hasToken =
    issued.sessionId !== sessionId || grantsOf(core).isRenewalToken(renewalToken, sessionId, issued.generation)
  return hasToken ? content : { ...content, renewalToken: '' }
}

const nonceMarginMs = 60_000
