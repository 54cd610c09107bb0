import type { Collection } from 'mongodb'
import type { ErasureDocument } from '../privacy/erasure-store.ts'
import { openErasures } from '../privacy/open-erasures-store.ts'
import type { IdentityContextValue } from './identity-assertions.ts'
import type { PageContext } from './page-context.ts'

export type SessionStatus = 'active' | 'closed' | 'revoked' | 'banned'

/** Identity of a verified visitor, from the latest assertion. */
export interface Identity {
  subjectId: string
  externalSubject: string
  displayName?: string
  /** Bounded context for operators. Stored as pairs because the host chooses the keys. */
  context?: [key: string, value: IdentityContextValue][]
  verifiedAt: Date
  /** The operation that brought the assertion. */
  operation: string
}

export interface Session {
  sessionId: string
  workspaceId: string
  connectionId: string
  publicSiteKey: string
  /** The origin that its grants are bound to. */
  origin: string
  /** Never changes after a client has received the session's credentials. */
  conversationId: string
  /** Written by earlier versions: conversations that the session left without a message. */
  formerConversationIds?: string[]
  visitorId: string
  clientInstanceId: string
  locale?: string
  /** The last reported page and the time of the report. */
  pageContext?: PageContext
  pageContextAt?: Date
  /**
   * Set from the beginning of a verified session. An anonymous session gets it with the write that
   * replaces it with a verified one. From then on it counts as the subject's.
   */
  identity?: Identity
  /**
   * Set before the first message of an anonymous session. An identification then continues its
   * conversation.
   */
  hasWritten?: boolean
  /**
   * Version of the connection's status when the session began. A later version ends the session.
   */
  connectionVersion?: number
  /** The session that replaced this one, and the operation that did it. */
  successor?: { operation: string; sessionId: string }
  /**
   * The session that this one replaces, until its conversation is decided. No client has its
   * credentials yet.
   */
  provisionalFor?: string
  /**
   * The anonymous session whose operations this one may repeat, because their outcome may be
   * unknown.
   */
  operationSessionId?: string
  /** The visitor's operation that closed the session. */
  closedBy?: string
  status: SessionStatus
  createdAt: Date
  /** End of the latest grant. The session expires then. */
  grantExpiresAt: Date
  /** Maximum end of the session, whatever the renewals. */
  endsAt: Date
  renewal: {
    /** Number of renewals. The renewal token is derived from it. */
    generation: number
    /** Time until which the previous generation's token is valid. */
    previousUntil: Date
  }
}

export type SessionDocument = Omit<Session, 'sessionId'> & {
  _id: string
  /** Erasures of its visitor under way when it began. They do not apply to it. */
  afterErasures?: string[]
  /** Erasures of its subject under way when an anonymous session got the subject. */
  joinedAfterErasures?: string[]
}

export interface VisitorDocument {
  _id: string
  bannedAt?: Date
  banReason?: string
}

export interface SessionStore {
  /** Returns false and changes nothing when the session exists. */
  insertOnce(session: Session): Promise<boolean>
  find(sessionIds: string[]): Promise<Session[]>
  /**
   * Ends an active session. Returns false when it was not active. `closedBy` is the visitor's
   * operation.
   */
  end(sessionId: string, status: Exclude<SessionStatus, 'active'>, closedBy?: string): Promise<boolean>
  /**
   * Ends every active session of a browser or a verified subject. Returns the ids of all their
   * sessions that could have a live grant at `at`. It includes sessions ended before, because the
   * process that ended them may have sent no wake-up.
   */
  endAllOf(
    visitor: { visitorId: string; subjectId?: string },
    status: Exclude<SessionStatus, 'active'>,
    at: Date,
  ): Promise<string[]>
  /** Replaces the identity of an active session. Returns false when it was not active. */
  refreshIdentity(sessionId: string, identity: Identity, grantExpiresAt: Date): Promise<boolean>
  /**
   * Closes an active session that another one replaces. Returns false when it was not active.
   * `identity` is the subject of an anonymous session.
   */
  replaceBy(
    sessionId: string,
    successor: { operation: string; sessionId: string },
    identity: Identity | undefined,
  ): Promise<boolean>
  /** Marks that an active session has written. Returns false when it is not active. */
  markWritten(sessionId: string): Promise<boolean>
  /** Sessions of a subject whose conversation is not decided. */
  findProvisional(subjectId: string): Promise<Session[]>
  /** Decides the conversation of a provisional session. The first decision stays. */
  setConversation(sessionId: string, conversationId: string): Promise<void>
  setPageContext(sessionId: string, pageContext: PageContext, at: Date): Promise<void>
  /** Renews the grant and the token. Returns false when another renewal was first. */
  renew(sessionId: string, from: number, renewal: { grantExpiresAt: Date; previousUntil: Date }): Promise<boolean>
  /** Extends the grant within the same generation. */
  extend(sessionId: string, generation: number, grantExpiresAt: Date): Promise<boolean>
  ban(visitorId: string, ban: { at: Date; reason: string }): Promise<void>
  unban(visitorId: string): Promise<void>
  /** Whether any of these browsers and subjects is banned. */
  isBanned(...visitorIds: string[]): Promise<boolean>
}

export function createSessionStore({
  sessions,
  visitors,
  erasures,
}: {
  sessions: Collection<SessionDocument>
  visitors: Collection<VisitorDocument>
  erasures: Collection<ErasureDocument>
}): SessionStore {
  /**
   * Returns a field with the erasures under way of these browsers and subjects; empty when there
   * are none.
   */
  async function erasureField(field: 'afterErasures' | 'joinedAfterErasures', visitorIds: (string | undefined)[]) {
    const ids = await openErasures(erasures, visitorIds)
    return ids.length > 0 ? { [field]: ids } : {}
  }

  const afterErasures = ({ visitorId, identity }: Pick<Session, 'visitorId' | 'identity'>) =>
    erasureField('afterErasures', [visitorId, identity?.subjectId])

  return {
    async insertOnce({ sessionId, ...rest }) {
      const session = { ...rest, ...(await afterErasures(rest)) }
      const { upsertedCount } = await sessions.updateOne(
        { _id: sessionId },
        { $setOnInsert: session },
        { upsert: true },
      )
      return upsertedCount === 1
    },

    async find(sessionIds) {
      return (await sessions.find({ _id: { $in: sessionIds } }).toArray()).map(toSession)
    },

    async end(sessionId, status, closedBy) {
      const { modifiedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { status, closedBy } },
      )
      return modifiedCount === 1
    },

    async endAllOf({ visitorId, subjectId }, status, at) {
      const wanted = [{ visitorId }, ...(subjectId === undefined ? [] : [{ 'identity.subjectId': subjectId }])]
      const found = wanted.map((visitor) =>
        sessions.find({ ...visitor, endsAt: { $gt: at } }, { projection: { _id: 1 } }).toArray(),
      )
      const ids = [...new Set((await Promise.all(found)).flat().map(({ _id }) => _id))]
      if (ids.length > 0) await sessions.updateMany({ _id: { $in: ids }, status: 'active' }, { $set: { status } })
      return ids
    },

    async refreshIdentity(sessionId, identity, grantExpiresAt) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { identity }, $max: { grantExpiresAt } },
      )
      return matchedCount === 1
    },

    async replaceBy(sessionId, successor, identity) {
      const joined = identity && (await erasureField('joinedAfterErasures', [identity.subjectId]))
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { status: 'closed', successor, identity, ...joined } },
      )
      return matchedCount === 1
    },

    async markWritten(sessionId) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { hasWritten: true } },
      )
      return matchedCount === 1
    },

    async findProvisional(subjectId) {
      const filter = { 'identity.subjectId': subjectId, provisionalFor: { $exists: true }, status: 'active' as const }
      return (await sessions.find(filter).toArray()).map(toSession)
    },

    async setConversation(sessionId, conversationId) {
      await sessions.updateOne(
        { _id: sessionId, provisionalFor: { $exists: true } },
        { $set: { conversationId }, $unset: { provisionalFor: '' } },
      )
    },

    async setPageContext(sessionId, pageContext, at) {
      await sessions.updateOne({ _id: sessionId }, { $set: { pageContext, pageContextAt: at } })
    },

    async renew(sessionId, from, { grantExpiresAt, previousUntil }) {
      const { modifiedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active', 'renewal.generation': from },
        { $set: { grantExpiresAt, renewal: { generation: from + 1, previousUntil } } },
      )
      return modifiedCount === 1
    },

    async extend(sessionId, generation, grantExpiresAt) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active', 'renewal.generation': generation },
        { $max: { grantExpiresAt } },
      )
      return matchedCount === 1
    },

    async ban(visitorId, { at, reason }) {
      await visitors.updateOne({ _id: visitorId }, { $set: { bannedAt: at, banReason: reason } }, { upsert: true })
    },

    async unban(visitorId) {
      await visitors.updateOne({ _id: visitorId }, { $unset: { bannedAt: '', banReason: '' } })
    },

    async isBanned(...visitorIds) {
      const filter = { _id: { $in: visitorIds }, bannedAt: { $exists: true } }
      return (await visitors.findOne(filter, { projection: { _id: 1 } })) !== null
    },
  }
}

/**
 * The session in the operation keys of a visitor. An identified session keeps that of the anonymous
 * one.
 */
export function operationSessionOf({ sessionId, operationSessionId = sessionId }: Session): string {
  return operationSessionId
}

function toSession({ _id, afterErasures: _, joinedAfterErasures: __, ...rest }: SessionDocument): Session {
  return { sessionId: _id, ...rest }
}
