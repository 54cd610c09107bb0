import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { ConversationStore } from '../conversations/conversation-store.ts'
import { ServiceError } from '../errors.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import type { Keyring } from '../keys/keyring.ts'
import type { EventLog } from '../log/event-log.ts'
import type { LogEvent } from '../log/model.ts'
import { operationKeys } from '../log/operation-keys.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { Installation } from '../workspaces/workspace-store.ts'
import type { IdentityAssertions } from './identity-assertions.ts'
import { firstGrantOf, idOfOperation, newConversation, newSession, type SessionLifetimes } from './new-session.ts'
import type { NonceStore } from './nonce-store.ts'
import {
  grantTimes,
  type Issued,
  type Repeatable,
  type SessionContent,
  type SessionContents,
} from './session-content.ts'
import type { Identity, Session, SessionStore } from './session-store.ts'
import type { Subjects } from './subjects.ts'
import type { VisitorAccess, VisitorCredentials } from './visitor-access.ts'

/**
 * Identifies visitors (contract, section 3, `/sessions/identify`). Errors of both: those of
 * VisitorAccess.authorize and of Idempotency.once. A repeat returns the first result, even if that
 * closed the session of the grant.
 */
export interface Identification {
  /**
   * Additional errors: IdentityAssertionInvalid, IdentityAssertionExpired,
   * IdentityAssertionReplayed, VisitorBanned.
   */
  identify(request: {
    credentials: VisitorCredentials
    assertion: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
  clear(request: { credentials: VisitorCredentials; idempotencyKey: string }): Promise<Repeatable<SessionContent>>
}

export interface IdentificationDependencies {
  store: SessionStore
  conversations: Pick<ConversationStore, 'insertOnce' | 'setLastSession'>
  nonces: NonceStore
  subjects: Subjects
  assertions: IdentityAssertions
  contents: SessionContents
  access: VisitorAccess
  log: Pick<EventLog, 'append'>
  idempotency: Idempotency
  keyring: Keyring
  wakeups: Pick<Wakeups, 'stateChanged'>
  settings: SessionLifetimes & { idempotencyRetention: number }
  now: () => number
}

/**
 * Identification, refresh and change of identity. Each is a sequence of steps that can be repeated.
 * One compare-and-set on the session decides. If a process dies in between, nothing has changed or
 * a repeat of the operation completes it (docs/decisions.md).
 */
export function createIdentification(dependencies: IdentificationDependencies): Identification {
  const { store, conversations, nonces, subjects, assertions, contents, access } = dependencies
  const { log, idempotency, keyring, wakeups, settings, now } = dependencies

  async function identifyOnce(
    sessionId: string,
    installation: Installation,
    assertion: string,
    operation: string,
  ): Promise<Issued> {
    const session = await latest(sessionId)
    if (session.status === 'closed') return completeReplacement(session, operation)
    await access.live(sessionId)
    if (session.identity?.operation === operation) return refresh(session, session.identity)
    const identity = await verifiedIdentity(session, installation, assertion, operation)
    if (session.identity?.subjectId === identity.subjectId) return refresh(session, identity)
    await subjects.reconcile(identity.subjectId)
    return replace(session, identity, operation)
  }

  /** Returns the identity of a valid and unused assertion. An invalid one changes nothing. */
  async function verifiedIdentity(
    { connectionId, publicSiteKey }: Session,
    installation: Installation,
    assertion: string,
    operation: string,
  ): Promise<Identity> {
    const { nonce, endsAt, ...claims } = await assertions.verify(assertion, installation)
    const subjectId = await subjects.idOf(connectionId, claims.externalSubject)
    if (await store.isBanned(subjectId)) throw new ServiceError(ErrorCode.VISITOR_BANNED)
    const expiresAt = new Date(endsAt.getTime() + nonceMarginMs)
    if (!(await nonces.consume({ publicSiteKey, nonce, operation, expiresAt }, new Date(now())))) {
      throw new ServiceError(ErrorCode.IDENTITY_ASSERTION_REPLAYED)
    }
    return { ...claims, subjectId, operation, verifiedAt: new Date(now()) }
  }

  /** Same subject: keeps the session and issues a new grant. */
  async function refresh(session: Session, identity: Identity): Promise<Issued> {
    const { sessionId, endsAt, renewal } = session
    const times = grantTimes(now(), settings.grantLifetime, endsAt)
    if (!(await store.refreshIdentity(sessionId, identity, new Date(times.expiresAt * 1000))))
      await rejectEnded(sessionId)
    await wakeups.stateChanged(sessionId)
    const grant = { ...times, generation: renewal.generation }
    return contents.issue({ ...session, identity }, grant, { state: 'continued' })
  }

  /**
   * Replaces a session with a new one, whose ids are derived from the operation. No client gets the
   * new credentials before the old session is closed; that write decides.
   */
  async function replace(old: Session, identity: Identity | undefined, operation: string): Promise<Issued> {
    const session = plannedSession(old, identity, operation)
    if (!session.operationSessionId) await conversations.insertOnce(newConversation(session, now()))
    await store.insertOnce(session)
    await rejectBanned(session)
    const { sessionId } = session
    const joined = old.identity ? undefined : identity
    if (joined) await appendIdentified(old)
    if (!(await store.replaceBy(old.sessionId, { operation, sessionId }, joined))) {
      const current = await latest(old.sessionId)
      if (current.successor?.operation !== operation) {
        await store.end(sessionId, 'closed')
        await rejectEnded(old.sessionId)
      }
    }
    return completeReplacement(await latest(old.sessionId), operation)
  }

  /** The new session. Another person's session keeps only the browser and the language. */
  function plannedSession(old: Session, identity: Identity | undefined, operation: string): Session {
    const { workspaceId, connectionId, connectionVersion, publicSiteKey, origin, visitorId, clientInstanceId } = old
    const { locale, pageContext, pageContextAt } = old
    const isJoining = identity !== undefined && old.identity === undefined
    return newSession(
      {
        sessionId: idFor('ses', operation),
        workspaceId,
        connectionId,
        connectionVersion,
        publicSiteKey,
        origin,
        conversationId: idFor('cnv', operation),
        visitorId,
        clientInstanceId,
        locale,
        identity,
        provisionalFor: identity && old.sessionId,
        ...(isJoining && {
          operationSessionId: old.sessionId,
          ...(pageContext && pageContextAt && { pageContext, pageContextAt }),
        }),
      },
      now(),
      settings,
    )
  }

  /** Completes the operation that closed a session and returns the content of the new session. */
  async function completeReplacement(old: Session, operation: string): Promise<Issued> {
    if (old.successor?.operation !== operation) throw new ServiceError(ErrorCode.SESSION_CLOSED)
    const session = await subjects.decideConversation(await latest(old.successor.sessionId), old)
    if (session.conversationId === old.conversationId) {
      const { sequence } = await appendIdentified(old)
      await conversations.setLastSession(session.conversationId, { sequence, sessionId: session.sessionId })
    }
    await wakeups.stateChanged(old.sessionId)
    const isNew = session.conversationId === idFor('cnv', operation)
    return contents.issue(session, firstGrantOf(session), { state: isNew ? 'new' : 'continued' })
  }

  /** Tells the streams of an anonymous session that the end that follows is an identification. */
  async function appendIdentified({ sessionId, conversationId }: Session): Promise<LogEvent> {
    const type = 'session.identified'
    const operationKey = operationKeys.session(sessionId, type)
    return (await log.append({ conversationId, type, sessionId, operationKey, inputHash: type })).event
  }

  /** A ban between the check and the insert did not end this session. */
  async function rejectBanned({ sessionId, visitorId, identity }: Session) {
    if (!(await store.isBanned(visitorId, ...(identity ? [identity.subjectId] : [])))) return
    await store.end(sessionId, 'banned')
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

  const idFor = (prefix: 'ses' | 'cnv', operation: string) => idOfOperation(keyring, prefix, operation)

  return {
    async identify({ credentials, assertion, idempotencyKey }) {
      const { session, installation } = await access.authorize(credentials, { closedToo: true })
      const { sessionId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/identify', sessionId],
        sessionId,
        key: idempotencyKey,
        input: { assertion },
        keptFor: settings.idempotencyRetention,
        run: (operation) => identifyOnce(sessionId, installation, assertion, operation),
      })
      return { content: await contents.contentOf(result), replayed }
    },

    async clear({ credentials, idempotencyKey }) {
      const { session, grantIssuedAt, grantExpiresAt } = await access.authorize(credentials, { closedToo: true })
      const { sessionId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['DELETE /sessions/identify', sessionId],
        sessionId,
        key: idempotencyKey,
        input: {},
        keptFor: settings.idempotencyRetention,
        async run(operation): Promise<Issued> {
          const current = await latest(sessionId)
          if (current.status === 'closed') return completeReplacement(current, operation)
          await access.live(sessionId)
          if (current.identity) return replace(current, undefined, operation)
          // Returns the grant of the request.
          const times = { issuedAt: grantIssuedAt.getTime() / 1000, expiresAt: grantExpiresAt.getTime() / 1000 }
          const grant = { ...times, generation: current.renewal.generation }
          return contents.issue(current, grant, { state: 'continued' })
        },
      })
      return { content: await contents.contentOf(result), replayed }
    },
  }
}

/** How much longer than its assertion a nonce is kept, because the clocks of cores differ. */
const nonceMarginMs = 60_000
