import type { IdentifyVisitorRequest } from '#proto/session/v1/session_pb.js'
import { followAddress, isSubjectBanned } from '../bans/bans.ts'
import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { grantsOf } from '../sessions/grants.ts'
import {
  grantOf,
  grantTimes,
  type Identity,
  type Issued,
  type Session,
  type SessionContent,
  storedTimes,
  type Visitor,
  type VisitorOperation,
} from '../sessions/model.ts'
import { sessionContentsOf } from '../sessions/session-content.ts'
import { changeLive, oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { subjectIdOn } from '../sessions/visitor-ids.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { type Installation, requireCapability } from '../workspaces/model.ts'
import { consumeNonce, verifyAssertion } from './identity-assertions.ts'
import { latestSession, repeatReplacement, replaceSession } from './session-replacements.ts'
import { reconcileSubject } from './subjects.ts'

/** Without the renewal token of the present session, an answer for this session has no token. */
type IdentityChange = VisitorOperation & Pick<IdentifyVisitorRequest, 'clientAddress' | 'renewalToken'>

/**
 * Additional errors: RouteNotAdvertised, IdentityAssertionInvalid, IdentityAssertionExpired,
 * IdentityAssertionReplayed, VisitorBanned.
 */
export const identifyVisitor = (core: Core, { assertion, ...request }: IdentityChange & { assertion: string }) =>
  changeIdentity(core, request, 'POST /sessions/identify', { assertion }, async (current, visitor, operation) => {
    const { installation } = visitor
    if (current.identity?.operation === operation) return refresh(core, current, current.identity)
    // Checked only now, so that an operation that succeeded before the capability was disabled can be repeated.
    requireCapability(installation, 'identity')
    const session = await followAddress(core, current, request.clientAddress)
    const identity = await verifiedIdentity(core, session, installation, assertion, operation)
    if (session.identity?.subjectId === identity.subjectId) return refresh(core, session, identity)
    await reconcileSubject(core, identity.subjectId)
    return replaceSession(core, session, identity, operation, installation)
  })

/** Additional errors: VisitorBanned. */
export const clearIdentity = (core: Core, request: IdentityChange) =>
  changeIdentity(core, request, 'DELETE /sessions/identify', {}, async (current, visitor, operation) => {
    const { installation, grantIssuedAt, grantExpiresAt } = visitor
    const session = await followAddress(core, current, request.clientAddress)
    if (session.identity) return replaceSession(core, session, undefined, operation, installation)
    // The session keeps the grant that the request used.
    const grant = grantOf(current, grantIssuedAt, grantExpiresAt)
    return sessionContentsOf(core).issue(current, grant, { state: 'continued' })
  })

/** Runs a change once. A repeat whose first run died after it had closed the session completes that run. */
async function changeIdentity(
  core: Core,
  { credentials, renewalToken, idempotencyKey }: IdentityChange,
  route: string,
  input: object,
  change: (current: Session, visitor: Visitor, operation: string) => Promise<Issued>,
): Promise<Repeatable<SessionContent>> {
  const visitor = await visitorAccessOf(core).authorize(credentials, { closedToo: true })
  const { session, installation } = visitor
  const { sessionId } = session
  async function run(operation: string) {
    const current = await latestSession(core, sessionId)
    if (current.status === 'closed') return repeatReplacement(core, current, operation, installation)
    await visitorAccessOf(core).live(sessionId)
    return change(current, visitor, operation)
  }
  const { content, replayed } = await oncePerSession(core, route, session, idempotencyKey, input, run)
  return { content: await answerTo(core, sessionId, renewalToken, content), replayed }
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
  if (await isSubjectBanned(core, workspaceId, claims.externalSubject)) throw new ServiceError('VisitorBanned')
  // The margin covers clock differences between cores.
  const expiresAt = new Date(endsAt.getTime() + nonceMarginMs)
  if (!(await consumeNonce(core, { publicSiteKey, nonce, operation, expiresAt }, dateOf(core)))) {
    throw new ServiceError('IdentityAssertionReplayed')
  }
  return { ...claims, subjectId, operation, verifiedAt: dateOf(core) }
}

/** Handles an assertion for the same visitor: keeps the session and issues a new grant. */
async function refresh(core: Core, session: Session, identity: Identity): Promise<Issued> {
  const { sessionId, endsAt, renewal } = session
  const times = grantTimes(core.now(), core.config, endsAt)
  await changeLive(core, sessionId, { $set: { identity }, $max: storedTimes(times) })
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
