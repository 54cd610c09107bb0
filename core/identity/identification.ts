import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Bans } from '../bans/bans.ts'
import type { Consents } from '../consents/consents.ts'
import type { Observations } from '../consents/observations.ts'
import { ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import type { EventLog } from '../log/event-log.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import type { ConversationRecords } from '../sessions/model.ts'
import {
  expiryOf,
  firstGrantOf,
  grantTimes,
  type Identity,
  type Issued,
  newConversation,
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
import { replacementOf } from './replacement-model.ts'
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
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
  /** Additional errors: VisitorBanned. */
  clear(request: {
    credentials: VisitorCredentials
    clientAddress?: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
}

export interface IdentificationDependencies {
  store: SessionStore
  conversations: Pick<ConversationRecords, 'insertOnce' | 'setLastSession'>
  nonces: NonceStore
  subjects: Subjects
  bans: Pick<Bans, 'isBanned' | 'isSubjectBanned' | 'followAddress'>
  consents: Pick<Consents, 'inherit'>
  observations: Pick<Observations, 'pageAtStart' | 'keepPage'>
  assertions: IdentityAssertions
  contents: SessionContents
  access: VisitorAccess
  log: Pick<EventLog, 'append'>
  idempotency: Idempotency
  plannedIds: PlannedIds
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
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
  const { store, conversations, nonces, subjects, bans, consents, observations, assertions } = dependencies
  const { contents, access, log, idempotency, plannedIds, wakeups, settings, now } = dependencies

  async function identifyOnce(
    sessionId: string,
    installation: Installation,
    { assertion, clientAddress }: { assertion: string; clientAddress?: string },
    operation: string,
  ): Promise<Issued> {
    const current = await latest(sessionId)
    if (current.status === 'closed') return repeatReplacement(current, operation, installation)
    await access.live(sessionId)
    if (current.identity?.operation === operation) return refresh(current, current.identity)
    // Check the capability only now. The code above completes a repeat of an operation that
    // succeeded before the capability was disabled.
    requireCapability(installation, 'identity')
    const session = await bans.followAddress(current, clientAddress)
    const identity = await verifiedIdentity(session, installation, assertion, operation)
    if (session.identity?.subjectId === identity.subjectId) return refresh(session, identity)
    await subjects.reconcile(identity.subjectId)
    return replace(session, identity, operation, installation)
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
    if (!(await store.refreshIdentity(sessionId, identity, storedTimes(times)))) await rejectEnded(sessionId)
    await wakeups.stateChanged(sessionId)
    const grant = { ...times, generation: renewal.generation }
    return contents.issue({ ...session, identity }, grant, { state: 'continued' })
  }

  /**
   * Replaces a session with a new one, whose ids are derived from the operation. Of concurrent
   * operations, the one whose write closes the old session succeeds. So no client gets the new
   * credentials before that write.
   */
  async function replace(
    old: Session,
    identity: Identity | undefined,
    operation: string,
    installation: Installation,
  ): Promise<Issued> {
    const planned = {
      sessionId: plannedIds('ses', operation),
      conversationId: plannedIds('cnv', operation),
      identity,
      pageContext: observations.pageAtStart(installation, old.pageContext),
    }
    const session = replacementOf(old, planned, now(), settings)
    if (!session.operationSessionId) await conversations.insertOnce(newConversation(session, now()))
    await store.insertOnce(session)
    await rejectBanned(session)
    const { sessionId } = session
    const joined = old.identity ? undefined : identity
    if (joined) await appendIdentified(old)
    return wakeups.changing([old.sessionId], async () => {
      if (!(await store.replaceBy(old.sessionId, { operation, sessionId }, joined))) {
        const current = await latest(old.sessionId)
        if (current.successor?.operation !== operation) {
          await store.end(sessionId, 'closed')
          await rejectEnded(old.sessionId)
        }
      }
      return completeReplacement(await latest(old.sessionId), operation, installation)
    })
  }

  /** Completes an operation whose first run died after it had closed the session. */
  async function repeatReplacement(old: Session, operation: string, installation: Installation): Promise<Issued> {
    const issued = await completeReplacement(old, operation, installation)
    await wakeups.stateChanged(old.sessionId)
    return issued
  }

  /** Completes the operation that closed a session. Returns the content of the new session. */
  async function completeReplacement(old: Session, operation: string, installation: Installation): Promise<Issued> {
    if (old.successor?.operation !== operation) throw new ServiceError(ErrorCode.SESSION_CLOSED)
    const session = await subjects.decideConversation(await latest(old.successor.sessionId), old)
    if (session.conversationId === old.conversationId) {
      const { sequence } = await appendIdentified(old)
      await conversations.setLastSession(session.conversationId, { sequence, sessionId: session.sessionId })
    }
    // The replaced anonymous session now belongs to the verified visitor, so its consent decision
    // applies to that visitor. After a logout another person may use the browser, and that person
    // must decide anew.
    if (session.identity) await consents.inherit(session)
    const isJoining = session.operationSessionId !== undefined
    if (isJoining && old.pageContext && old.pageContextAt && !session.pageContext)
      await observations.keepPage(session.sessionId, installation, old.pageContext, old.pageContextAt)
    const isNew = session.conversationId === plannedIds('cnv', operation)
    return contents.issue(session, firstGrantOf(session), { state: isNew ? 'new' : 'continued' })
  }

  /**
   * Announces the identification to the streams of an anonymous session before those streams get
   * the event that ends the session.
   */
  async function appendIdentified({ sessionId, conversationId }: Session): Promise<LogEvent> {
    const type = 'session.identified'
    const operationKey = operationKeys.session(sessionId, type)
    return (await log.append({ conversationId, type, sessionId, operationKey, inputHash: type })).event
  }

  /**
   * Ends the new session if its visitor is banned. A ban that was set between the check and the
   * insert of the session did not end the session.
   */
  async function rejectBanned(session: Session) {
    if (!(await bans.isBanned(session))) return
    await store.end(session.sessionId, 'banned')
    throw new ServiceError(ErrorCode.VISITOR_BANNED)
  }

  /** Throws the error for a session that another operation has ended. */
  async function rejectEnded(sessionId: string): Promise<never> {
    await access.live(sessionId)
    throw new ServiceError(ErrorCode.SESSION_CLOSED)
  }

  async function latest(sessionId: string): Promise<Session> {
    const [session] = await store.find([sessionId])
    if (!session) throw new ServiceError(ErrorCode.GRANT_INVALID)
    return session
  }

  return {
    async identify({ credentials, assertion, clientAddress, idempotencyKey }) {
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
      return { content: await contents.contentOf(result), replayed }
    },

    async clear({ credentials, clientAddress, idempotencyKey }) {
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
          const current = await latest(sessionId)
          if (current.status === 'closed') return repeatReplacement(current, operation, installation)
          await access.live(sessionId)
          const session = await bans.followAddress(current, clientAddress)
          if (session.identity) return replace(session, undefined, operation, installation)
          // The session keeps the grant that the request used.
          const grant = {
            issuedAt: grantIssuedAt.getTime() / 1000,
            expiresAt: grantExpiresAt.getTime() / 1000,
            renewableUntil: expiryOf(current).getTime() / 1000,
            generation: current.renewal.generation,
          }
          return contents.issue(current, grant, { state: 'continued' })
        },
      })
      return { content: await contents.contentOf(result), replayed }
    },
  }
}

/**
 * Additional time in milliseconds for which a nonce is kept after its assertion ends. It covers
 * clock differences between cores.
 */
const nonceMarginMs = 60_000
