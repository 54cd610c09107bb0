import type { Collection } from 'mongodb'
import type { ErasureDocument } from '../privacy/erasure-store.ts'
import { openErasures } from '../privacy/open-erasures-store.ts'
import type { IdentityContextValue } from './identity-assertions.ts'
import type { PageContext } from './page-context.ts'

export type SessionStatus = 'active' | 'closed' | 'revoked' | 'banned'

/** Who a verified visitor is, as the host backend's latest assertion said it. */
export interface Identity {
  subjectId: string
  externalSubject: string
  displayName?: string
  /** Bounded context for operators. Pairs, since its keys are the host's own. */
  context?: [key: string, value: IdentityContextValue][]
  verifiedAt: Date
  /** The operation that said it. */
  operation: string
}

export interface Session {
  sessionId: string
  workspaceId: string
  connectionId: string
  publicSiteKey: string
  /** The one origin that its grants are bound to. */
  origin: string
  /** Never changes once the session's credentials are given out. */
  conversationId: string
  /** Written by versions whose sessions moved: conversations that the session left without a message. */
  formerConversationIds?: string[]
  visitorId: string
  clientInstanceId: string
  locale?: string
  /** Where the visitor was last, and when that was reported. */
  pageContext?: PageContext
  pageContextAt?: Date
  /**
   * The subject of a verified session, from its beginning. An anonymous session gets it with the write that closes it in
   * favour of a verified one, so that it counts as the subject's from then on.
   */
  identity?: Identity
  /** Set before the first message of an anonymous session: an identification continues its conversation. */
  hasWritten?: boolean
  /** The version of its connection's status when the session began: a later version ends the session. */
  connectionVersion?: number
  /** The session that took this one's place when it was closed, and the operation that did it. */
  successor?: { operation: string; sessionId: string }
  /** The session that this one takes the place of, until its conversation is decided. Nobody has its credentials yet. */
  provisionalFor?: string
  /** The anonymous session whose operations this one may repeat: the client does not know which of them arrived. */
  operationSessionId?: string
  /** The operation of the visitor that closed the session. */
  closedBy?: string
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

export type SessionDocument = Omit<Session, 'sessionId'> & {
  _id: string
  /** Erasures of its visitor that were under way when it began: they are about what was there before. */
  afterErasures?: string[]
  /** Erasures of its subject that were under way when an anonymous session got the subject. */
  joinedAfterErasures?: string[]
}

export interface VisitorDocument {
  _id: string
  bannedAt?: Date
  banReason?: string
}

export interface SessionStore {
  /** False when it is there already: that changes nothing. */
  insertOnce(session: Session): Promise<boolean>
  find(sessionIds: string[]): Promise<Session[]>
  /** Ends an active session; false when it was not active any more. `closedBy` is the visitor's operation. */
  end(sessionId: string, status: Exclude<SessionStatus, 'active'>, closedBy?: string): Promise<boolean>
  /**
   * Ends every active session of a browser or a verified subject. Returns the ids of all of its sessions that could have
   * a live grant at `at`, also of those that were ended before: a process that ended them may have told nobody.
   */
  endAllOf(
    visitor: { visitorId: string; subjectId?: string },
    status: Exclude<SessionStatus, 'active'>,
    at: Date,
  ): Promise<string[]>
  /** Replaces what is known of an active session's subject; false when the session was not active any more. */
  refreshIdentity(sessionId: string, identity: Identity, grantExpiresAt: Date): Promise<boolean>
  /**
   * Closes an active session in favour of another one; false when it was not active any more. `identity` is the subject
   * that an anonymous session joins.
   */
  succeed(
    sessionId: string,
    successor: { operation: string; sessionId: string },
    identity: Identity | undefined,
  ): Promise<boolean>
  /** Marks that an active session has written; false when it is not active. */
  markWritten(sessionId: string): Promise<boolean>
  /** Sessions of a subject whose conversation is not decided. */
  findProvisional(subjectId: string): Promise<Session[]>
  /** Decides the conversation of a provisional session; the first decision stays. */
  setConversation(sessionId: string, conversationId: string): Promise<void>
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
  erasures,
}: {
  sessions: Collection<SessionDocument>
  visitors: Collection<VisitorDocument>
  erasures: Collection<ErasureDocument>
}): SessionStore {
  /** Sets a field to the erasures under way of these browsers and subjects; nothing when there are none. */
  async function noteErasures(field: 'afterErasures' | 'joinedAfterErasures', visitorIds: (string | undefined)[]) {
    const ids = await openErasures(erasures, visitorIds)
    return ids.length > 0 ? { [field]: ids } : {}
  }

  const begunAfter = ({ visitorId, identity }: Pick<Session, 'visitorId' | 'identity'>) =>
    noteErasures('afterErasures', [visitorId, identity?.subjectId])

  return {
    async insertOnce({ sessionId, ...rest }) {
      const session = { ...rest, ...(await begunAfter(rest)) }
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
        { $set: { status, ...(closedBy !== undefined && { closedBy }) } },
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

    async succeed(sessionId, successor, identity) {
      const joined = identity && (await noteErasures('joinedAfterErasures', [identity.subjectId]))
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { status: 'closed', successor, ...(identity && { identity, ...joined }) } },
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

/** The session that names the operations of a visitor: an identified one goes on with those of the anonymous one. */
export function operationSessionOf({ sessionId, operationSessionId = sessionId }: Session): string {
  return operationSessionId
}

function toSession({ _id, afterErasures: _, joinedAfterErasures: __, ...rest }: SessionDocument): Session {
  return { sessionId: _id, ...rest }
}
