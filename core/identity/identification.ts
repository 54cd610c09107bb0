import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Idempotency } from '../idempotency.ts'
import { plannedId } from '../ids.ts'
import { type Keyring, keyedHash } from '../keys/keyring.ts'
import type { EventLog } from '../log/event-log.ts'
import { operationKeys } from '../log/operation-keys.ts'
import type { Wakeups } from '../log/wakeups.ts'
import { firstGrantOf, newConversation, newSession, type SessionLifetimes } from '../sessions/new-session.ts'
import {
  grantTimes,
  type Issued,
  type Repeatable,
  type SessionContent,
  type SessionContents,
} from '../sessions/session-content.ts'
import type { VisitorAccess, VisitorCredentials } from '../sessions/visitor-access.ts'
import type { ConversationStore } from '../store/conversations.ts'
import type { NonceStore } from '../store/nonces.ts'
import type { Identity, Session, SessionStore } from '../store/sessions.ts'
import type { Installation } from '../store/workspaces.ts'
import type { IdentityAssertions } from './identity.ts'
import type { Subjects } from './subjects.ts'

/**
 * Who a visitor is (contract, section 3, `/sessions/identify`). Errors of both: those of VisitorAccess.authorize and of
 * Idempotency.once. A repeat is answered with the first answer even when that closed the session whose grant it shows.
 */
export interface Identification {
  /** Errors besides: IdentityAssertionInvalid, IdentityAssertionExpired, IdentityAssertionReplayed, VisitorBanned. */
  identify(request: {
    credentials: VisitorCredentials
    assertion: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
  clear(request: { credentials: VisitorCredentials; idempotencyKey: string }): Promise<Repeatable<SessionContent>>
}

export interface IdentificationDependencies {
  store: SessionStore
  conversations: Pick<ConversationStore, 'insertOnce' | 'find'>
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
 * Identification, refresh and change of identity. Each is a row of steps of which every one can be repeated, and one
 * compare-and-set on the session is what makes it happen. A process that dies in between leaves the old state, or what a
 * repeat of the same operation completes: docs/decisions.md tells how.
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
    if (session.status === 'closed') return succeeded(session, operation)
    await access.live(sessionId)
    const times = grantTimes(now(), settings.grantLifetime, session.endsAt)
    const grantExpiresAt = new Date(times.expiresAt * 1000)

    let identity = session.identity
    if (identity?.operation !== operation) {
      identity = await verifiedIdentity(session, installation, assertion, operation)
      if (session.identity && session.identity.subjectId !== identity.subjectId) {
        return switchTo(identity, session, operation)
      }
      if (session.identity) identity.joinedBy = session.identity.joinedBy
      const from = session.identity?.subjectId
      // Another operation was faster: it is judged anew what this one means.
      if (!(await store.setIdentity(sessionId, { from, identity, grantExpiresAt }))) {
        return identifyOnce(sessionId, installation, assertion, operation)
      }
    }

    const joins = identity.joinedBy === operation
    const settled = await subjects.settle(sessionId, { joins })
    await refuseBanned(settled)
    await wakeups.stateChanged(sessionId)
    const { conversationId, renewal } = settled
    const type = 'session.identified'
    await log.append({
      conversationId,
      type,
      sessionId,
      operationKey: operationKeys.session(sessionId, type),
      inputHash: type,
    })
    const stays = joins && conversationId === session.conversationId && !(await isOlder(settled))
    const grant = { ...times, generation: renewal.generation }
    return contents.issue(settled, grant, { state: stays ? 'new' : 'continued' })
  }

  /** What the assertion says, if it is good and counts. Nothing is changed by one that is not. */
  async function verifiedIdentity(
    { connectionId, publicSiteKey }: Session,
    installation: Installation,
    assertion: string,
    operation: string,
  ): Promise<Identity> {
    const { nonce, endsAt, ...said } = await assertions.verify(assertion, installation)
    const subjectId = await subjects.idOf(connectionId, said.externalSubject)
    if (await store.isBanned(subjectId)) throw new ServiceError(ErrorCode.VISITOR_BANNED)
    const expiresAt = new Date(endsAt.getTime() + nonceMargin)
    if (!(await nonces.use({ publicSiteKey, nonce, operation, expiresAt }, new Date(now())))) {
      throw new ServiceError(ErrorCode.IDENTITY_ASSERTION_REPLAYED)
    }
    return { ...said, subjectId, operation, joinedBy: operation, verifiedAt: new Date(now()) }
  }

  /**
   * Ends a session in favour of a new one, for another subject or for nobody. The new one has the ids that the operation
   * gives it and is known to nobody until the old one is closed, which is the one write that decides.
   */
  async function switchTo(identity: Identity | undefined, old: Session, operation: string): Promise<Issued> {
    const sessionId = idFor('ses', operation)
    await begin(sessionId, old, identity, operation)
    await refuseBanned(identity ? await subjects.settle(sessionId, { joins: true }) : await latest(sessionId))
    if (!(await store.succeed(old.sessionId, { operation, sessionId }))) {
      const current = await latest(old.sessionId)
      if (current.successor?.operation !== operation) {
        await store.end(sessionId, 'closed')
        await access.live(old.sessionId)
        throw new ServiceError(ErrorCode.SESSION_CLOSED)
      }
    }
    return succeeded(await latest(old.sessionId), operation)
  }

  async function begin(sessionId: string, old: Session, identity: Identity | undefined, operation: string) {
    const continued = identity && (await subjects.openConversation(identity.subjectId))
    const { workspaceId, connectionId, publicSiteKey, origin, visitorId, clientInstanceId, locale } = old
    const session = newSession(
      {
        sessionId,
        workspaceId,
        connectionId,
        publicSiteKey,
        origin,
        conversationId: continued?.conversationId ?? idFor('cnv', operation),
        visitorId,
        clientInstanceId,
        ...(locale === undefined ? {} : { locale }),
        ...(identity && { identity }),
      },
      now(),
      settings,
    )
    if (!continued) await conversations.insertOnce(newConversation(session, now()))
    await store.insertOnce(session)
  }

  /** The answer of the operation that closed a session: the content of the session that came after it. */
  async function succeeded({ sessionId, successor }: Session, operation: string): Promise<Issued> {
    if (successor?.operation !== operation) throw new ServiceError(ErrorCode.SESSION_CLOSED)
    await wakeups.stateChanged(sessionId)
    const session = await latest(successor.sessionId)
    return contents.issue(session, firstGrantOf(session), { state: (await isOlder(session)) ? 'continued' : 'new' })
  }

  /** A ban that came between the look and the write did not find this session. */
  async function refuseBanned({ sessionId, visitorId, identity }: Session) {
    if (!(await store.isBanned(visitorId, ...(identity ? [identity.subjectId] : [])))) return
    await store.end(sessionId, 'banned')
    await wakeups.stateChanged(sessionId)
    throw new ServiceError(ErrorCode.VISITOR_BANNED)
  }

  async function isOlder({ conversationId, createdAt }: Session): Promise<boolean> {
    const [conversation] = await conversations.find([conversationId])
    return conversation !== undefined && conversation.createdAt < createdAt
  }

  async function latest(sessionId: string): Promise<Session> {
    const [session] = await store.find([sessionId])
    if (!session) throw new ServiceError(ErrorCode.GRANT_INVALID)
    return session
  }

  function idFor(prefix: 'ses' | 'cnv', operation: string) {
    return plannedId(prefix, keyedHash(keyring.current('planned-id').key, prefix, operation))
  }

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
          if (current.status === 'closed') return succeeded(current, operation)
          await access.live(sessionId)
          if (current.identity) return switchTo(undefined, current, operation)
          // The grant that was shown, given back.
          const times = { issuedAt: grantIssuedAt.getTime() / 1000, expiresAt: grantExpiresAt.getTime() / 1000 }
          const grant = { ...times, generation: current.renewal.generation }
          return contents.issue(current, grant, { state: 'continued' })
        },
      })
      return { content: await contents.contentOf(result), replayed }
    },
  }
}

/** How much longer than its assertion a nonce is kept, for cores whose clocks differ, in milliseconds. */
const nonceMargin = 60_000
