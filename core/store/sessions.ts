import type { Collection } from 'mongodb'
import type { IdentityContextValue } from '../identity/identity.ts'
import type { PageContext } from '../sessions/page-context.ts'

export type SessionStatus = 'active' | 'closed' | 'revoked' | 'banned'

/** Who a verified visitor is, as the host backend's latest assertion said it. */
export interface Identity {
  subjectId: string
  externalSubject: string
  displayName?: string
  /** Bounded context for operators. Pairs, since its keys are the host's own. */
  context?: [key: string, value: IdentityContextValue][]
  verifiedAt: Date
  /** The operation that said it, and the one that made the session this subject's. */
  operation: string
  joinedBy: string
}

export interface Session {
  sessionId: string
  workspaceId: string
  connectionId: string
  publicSiteKey: string
  /** The one origin that its grants are bound to. */
  origin: string
  conversationId: string
  /** Those that it was moved out of: nothing was said there, but their logs name the session. */
  formerConversationIds?: string[]
  visitorId: string
  clientInstanceId: string
  locale?: string
  /** Where the visitor was last, and when that was reported. */
  pageContext?: PageContext
  pageContextAt?: Date
  /** Set once the visitor is verified. It never becomes another subject's: that is another session. */
  identity?: Identity
  /** Set before the session's first message: from then on the session stays in its conversation. */
  hasWritten?: boolean
  /** The session that took this one's place when it was closed, and the operation that did it. */
  successor?: { operation: string; sessionId: string }
  status: SessionStatus
  createdAt: Date
  /** End of the latest grant: the session is expired after it. */
  grantExpiresAt: Date
  /** However often it is renewed, it ends here. */
  endsAt: Date
  renewal: {
    /** Counts the renewals; the renewal token is derived from it. */
    generation: number
    /** Until when the token of the generation before is good. */
    previousUntil: Date
  }
}

export type SessionDocument = Omit<Session, 'sessionId'> & { _id: string }

export interface VisitorDocument {
  _id: string
  bannedAt?: Date
  banReason?: string
}

export interface SessionStore {
  insert(session: Session): Promise<void>
  /** An insert of what is there already changes nothing. */
  insertOnce(session: Session): Promise<void>
  find(sessionIds: string[]): Promise<Session[]>
  /** Ends an active session; false when it was not active any more. */
  end(sessionId: string, status: Exclude<SessionStatus, 'active'>): Promise<boolean>
  /** Ends every active session of a browser or a verified subject; their ids. */
  endAllOf(
    visitor: { visitorId: string; subjectId?: string },
    status: Exclude<SessionStatus, 'active'>,
  ): Promise<string[]>
  /** Says who an active session's visitor is, if the session still has the subject it had (`from`), or none. */
  setIdentity(
    sessionId: string,
    change: { from: string | undefined; identity: Identity; grantExpiresAt: Date },
  ): Promise<boolean>
  /** Closes an active session in favour of another one; false when it was not active any more. */
  succeed(sessionId: string, successor: { operation: string; sessionId: string }): Promise<boolean>
  /** Marks that an active session writes in this conversation; false when it is not in it, or not active. */
  markWritten(sessionId: string, conversationId: string): Promise<boolean>
  /** Moves an active session that has written nothing; false when it is not there, or has written, or is not active. */
  move(sessionId: string, conversations: { from: string; to: string }): Promise<boolean>
  /** Active sessions of a subject that have written nothing. */
  findUnwritten(subjectId: string): Promise<Session[]>
  setPageContext(sessionId: string, pageContext: PageContext, at: Date): Promise<void>
  /** One step of a renewal, if nobody else took it first. */
  renew(sessionId: string, from: number, renewal: { grantExpiresAt: Date; previousUntil: Date }): Promise<boolean>
  /** The same generation, with a grant that ends later. */
  extend(sessionId: string, generation: number, grantExpiresAt: Date): Promise<boolean>
  ban(visitorId: string, ban: { at: Date; reason: string }): Promise<void>
  unban(visitorId: string): Promise<void>
  /** Whether any of these browsers and subjects is banned. */
  isBanned(...visitorIds: string[]): Promise<boolean>
}

export function createSessionStore({
  sessions,
  visitors,
}: {
  sessions: Collection<SessionDocument>
  visitors: Collection<VisitorDocument>
}): SessionStore {
  return {
    async insert({ sessionId, ...rest }) {
      await sessions.insertOne({ _id: sessionId, ...rest })
    },

    async insertOnce({ sessionId, ...rest }) {
      await sessions.updateOne({ _id: sessionId }, { $setOnInsert: rest }, { upsert: true })
    },

    async find(sessionIds) {
      return (await sessions.find({ _id: { $in: sessionIds } }).toArray()).map(toSession)
    },

    async end(sessionId, status) {
      const { modifiedCount } = await sessions.updateOne({ _id: sessionId, status: 'active' }, { $set: { status } })
      return modifiedCount === 1
    },

    async endAllOf({ visitorId, subjectId }, status) {
      const wanted = [{ visitorId }, ...(subjectId === undefined ? [] : [{ 'identity.subjectId': subjectId }])]
      const found = wanted.map((visitor) =>
        sessions.find({ ...visitor, status: 'active' }, { projection: { _id: 1 } }).toArray(),
      )
      const ids = [...new Set((await Promise.all(found)).flat().map(({ _id }) => _id))]
      if (ids.length > 0) await sessions.updateMany({ _id: { $in: ids }, status: 'active' }, { $set: { status } })
      return ids
    },

    async setIdentity(sessionId, { from, identity, grantExpiresAt }) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active', 'identity.subjectId': from ?? { $exists: false } },
        { $set: { identity }, $max: { grantExpiresAt } },
      )
      return matchedCount === 1
    },

    async succeed(sessionId, successor) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { status: 'closed', successor } },
      )
      return matchedCount === 1
    },

    async markWritten(sessionId, conversationId) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active', conversationId },
        { $set: { hasWritten: true } },
      )
      return matchedCount === 1
    },

    async move(sessionId, { from, to }) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active', conversationId: from, hasWritten: { $ne: true } },
        { $set: { conversationId: to }, $addToSet: { formerConversationIds: from } },
      )
      return matchedCount === 1
    },

    async findUnwritten(subjectId) {
      const filter = { 'identity.subjectId': subjectId, status: 'active' as const, hasWritten: { $ne: true } }
      return (await sessions.find(filter).toArray()).map(toSession)
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

function toSession({ _id, ...rest }: SessionDocument): Session {
  return { sessionId: _id, ...rest }
}
