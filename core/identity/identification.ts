import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Bans } from '../bans/bans.ts'
import { ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import type { Grants } from '../sessions/grants.ts'
import {
  grantTimes,
  type Identity,
  type Issued,
  type Session,
  type SessionContent,
  type SessionLifetimes,
  storedTimes,
  type VisitorCredentials,
} from '../sessions/model.ts'
import type { SessionContents } from '../sessions/session-content.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { Installation } from '../workspaces/model.ts'
import type { IdentityAssertions } from './identity-assertions.ts'
import type { NonceStore } from './identity-store.ts'
import type { SessionReplacements } from './session-replacements.ts'
import type { Subjects } from './subjects.ts'

/**
 * Identifies visitors (contract, section 3, `/sessions/identify`). Errors of both methods: those of
 * VisitorAccess.authorize and of Idempotency.once. A repeated call returns the first result, even
 * if the first call closed the session of the grant.
 */
export interface Identification {
  /**
   * Additional errors: RouteNotAdvertised, IdentityAssertionInvalid, IdentityAssertionExpired,
   * IdentityAssertionReplayed, VisitorBanned.
   */
  identify(request: {
    credentials: VisitorCredentials
    assertion: string
    /** The client's IP address, if the gateway knows it. */
    clientAddress?: string
    /** The renewal token of the present session. Only then an answer for this session has it too. */
    renewalToken?: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
  /** Additional errors: VisitorBanned. */
  clear(request: {
    credentials: VisitorCredentials
    clientAddress?: string
    renewalToken?: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
}

interface IdentificationDependencies {
  store: Pick<SessionStore, 'refreshIdentity'>
  replacements: SessionReplacements
  nonces: NonceStore
  subjects: Pick<Subjects, 'idOf' | 'reconcile'>
  bans: Pick<Bans, 'isSubjectBanned' | 'followAddress'>
  assertions: IdentityAssertions
  contents: SessionContents
  grants: Pick<Grants, 'isRenewalToken'>
  access: VisitorAccess
  idempotency: Idempotency
  wakeups: Pick<Wakeups, 'stateChanged'>
  settings: SessionLifetimes & { idempotencyRetention: number }
  now: () => number
}

/**
 * Identifies a visitor, refreshes an identity, or replaces it with another one. Each operation is a
 * sequence of steps that can be repeated. One compare-and-set on the session decides which
 * operation succeeds. If a process dies before that write, nothing has changed. If it dies later, a
 * repeat of the operation completes it (docs/decisions.md).
 */
export function createIdentification(dependencies: IdentificationDependencies): Identification {
  const { store, replacements, nonces, subjects, bans, assertions } = dependencies
  const { contents, grants, access, idempotency, wakeups, settings, now } = dependencies

  async function identifyOnce(
    sessionId: string,
    installation: Installation,
    { assertion, clientAddress }: { assertion: string; clientAddress?: string },
    operation: string,
  ): Promise<Issued> {
    const current = await replacements.latest(sessionId)
    if (current.status === 'closed') return replacements.repeat(current, operation, installation)
    await access.live(sessionId)
    if (current.identity?.operation === operation) return refresh(current, current.identity)
    // Check the capability only now. The code above completes a repeat of an operation that
    // succeeded before the capability was disabled.
    requireCapability(installation, 'identity')
    const session = await bans.followAddress(current, clientAddress)
    const identity = await verifiedIdentity(session, installation, assertion, operation)
    if (session.identity?.subjectId === identity.subjectId) return refresh(session, identity)
    await subjects.reconcile(identity.subjectId)
    return replacements.replace(session, identity, operation, installation)
  }

  /** Returns the identity of a valid and unused assertion. Otherwise throws and changes nothing. */
  async function verifiedIdentity(
    { workspaceId, connectionId, publicSiteKey }: Session,
    installation: Installation,
    assertion: string,
    operation: string,
  ): Promise<Identity> {
    const { nonce, endsAt, ...claims } = await assertions.verify(assertion, installation)
    const subjectId = await subjects.idOf(connectionId, claims.externalSubject)
    if (await bans.isSubjectBanned(workspaceId, claims.externalSubject))
      throw new ServiceError(ErrorCode.VISITOR_BANNED)
    const expiresAt = new Date(endsAt.getTime() + nonceMarginMs)
    if (!(await nonces.consume({ publicSiteKey, nonce, operation, expiresAt }, new Date(now())))) {
      throw new ServiceError(ErrorCode.IDENTITY_ASSERTION_REPLAYED)
    }
    return { ...claims, subjectId, operation, verifiedAt: new Date(now()) }
  }

  /** Handles an assertion for the same visitor: keeps the session and issues a new grant. */
  async function refresh(session: Session, identity: Identity): Promise<Issued> {
    const { sessionId, endsAt, renewal } = session
    const times = grantTimes(now(), settings, endsAt)
    if (!(await store.refreshIdentity(sessionId, identity, storedTimes(times)))) await access.rejectEnded(sessionId)
    await wakeups.stateChanged(sessionId)
    const grant = { ...times, generation: renewal.generation }
    return contents.issue({ ...session, identity }, grant, { state: 'continued' })
  }

  /**
   * Adds the credentials. A grant alone must not become a renewal token: the token is only in an
   * answer for a new session, or for a caller who has it.
   */
  async function answerTo(sessionId: string, renewalToken = '', issued: Issued): Promise<SessionContent> {
    const content = await contents.contentOf(issued)
    const hasToken = issued.sessionId !== sessionId || grants.isRenewalToken(renewalToken, sessionId, issued.generation)
    return hasToken ? content : { ...content, renewalToken: '' }
  }

  return {
    async identify({ credentials, assertion, clientAddress, renewalToken, idempotencyKey }) {
      const { session, installation } = await access.authorize(credentials, { closedToo: true })
      const { sessionId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/identify', sessionId],
        sessionId,
        key: idempotencyKey,
        input: { assertion },
        keptFor: settings.idempotencyRetention,
        run: (operation) => identifyOnce(sessionId, installation, { assertion, clientAddress }, operation),
      })
      return { content: await answerTo(sessionId, renewalToken, result), replayed }
    },

    async clear({ credentials, clientAddress, renewalToken, idempotencyKey }) {
      const visitor = await access.authorize(credentials, { closedToo: true })
      const { session, installation, grantIssuedAt, grantExpiresAt } = visitor
      const { sessionId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['DELETE /sessions/identify', sessionId],
        sessionId,
        key: idempotencyKey,
        input: {},
        keptFor: settings.idempotencyRetention,
        async run(operation): Promise<Issued> {
          const current = await replacements.latest(sessionId)
          if (current.status === 'closed') return replacements.repeat(current, operation, installation)
          await access.live(sessionId)
          const session = await bans.followAddress(current, clientAddress)
          if (session.identity) return replacements.replace(session, undefined, operation, installation)
          // The session keeps the grant that the request used.
          const grant = {
            issuedAt: grantIssuedAt.getTime() / 1000,
            expiresAt: grantExpiresAt.getTime() / 1000,
            renewableUntil: current.renewableUntil.getTime() / 1000,
            generation: current.renewal.generation,
          }
          return contents.issue(current, grant, { state: 'continued' })
        },
      })
      return { content: await answerTo(sessionId, renewalToken, result), replayed }
    },
  }
}

/**
 * Additional time in milliseconds for which a nonce is kept after its assertion ends. It covers
 * clock differences between cores.
 */
const nonceMarginMs = 60_000
