import type { PageContext } from '../page-context.ts'
import type { Collections } from './database.ts'

export type SessionStatus = 'active' | 'closed' | 'revoked' | 'banned'

export interface Session {
  sessionId: string
  workspaceId: string
  connectionId: string
  publicSiteKey: string
  /** The one origin that its grants are bound to. */
  origin: string
  conversationId: string
  visitorId: string
  clientInstanceId: string
  locale?: string
  pageContext?: PageContext
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
  find(sessionIds: string[]): Promise<Session[]>
  /** Ends an active session; false when it was not active any more. */
  end(sessionId: string, status: Exclude<SessionStatus, 'active'>): Promise<boolean>
  /** Ends every active session of a visitor; their ids. */
  endAllOf(visitorId: string, status: Exclude<SessionStatus, 'active'>): Promise<string[]>
  /** One step of a renewal, if nobody else took it first. */
  renew(sessionId: string, from: number, renewal: { grantExpiresAt: Date; previousUntil: Date }): Promise<boolean>
  /** The same generation, with a grant that ends later. */
  extend(sessionId: string, generation: number, grantExpiresAt: Date): Promise<boolean>
  ban(visitorId: string, ban: { at: Date; reason: string }): Promise<void>
  unban(visitorId: string): Promise<void>
  isBanned(visitorId: string): Promise<boolean>
}

export function createSessionStore({ sessions, visitors }: Pick<Collections, 'sessions' | 'visitors'>): SessionStore {
  return {
    async insert({ sessionId, ...rest }) {
      await sessions.insertOne({ _id: sessionId, ...rest })
    },

    async find(sessionIds) {
      return (await sessions.find({ _id: { $in: sessionIds } }).toArray()).map(toSession)
    },

    async end(sessionId, status) {
      const { modifiedCount } = await sessions.updateOne({ _id: sessionId, status: 'active' }, { $set: { status } })
      return modifiedCount === 1
    },

    async endAllOf(visitorId, status) {
      const active = await sessions.find({ visitorId, status: 'active' }, { projection: { _id: 1 } }).toArray()
      const ids = active.map(({ _id }) => _id)
      if (ids.length > 0) await sessions.updateMany({ _id: { $in: ids }, status: 'active' }, { $set: { status } })
      return ids
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

    async isBanned(visitorId) {
      return (
        (await visitors.findOne({ _id: visitorId, bannedAt: { $exists: true } }, { projection: { _id: 1 } })) !== null
      )
    },
  }
}

function toSession({ _id, ...rest }: SessionDocument): Session {
  return { sessionId: _id, ...rest }
}
