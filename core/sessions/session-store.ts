import type { Filter } from 'mongodb'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { type DocumentUpdate, updateEach } from '../mongodb/update-each.ts'
import type { ConsentDecision, Identity, PageContext, Session, SessionStatus, VisitorConversation } from './model.ts'
import { openErasures } from './open-erasures-store.ts'
import type { VisitorIds } from './visitor-ids.ts'

export type SessionDocument = Omit<Session, 'sessionId'> & {
  _id: string
  /**
   * Ids of the visitor's erasures that were unfinished when the session began. These erasures do
   * not remove the session.
   */
  afterErasures?: string[]
  /**
   * Ids of the verified visitor's erasures that were unfinished when an identification linked the
   * anonymous session to that visitor. These erasures do not remove the session.
   */
  joinedAfterErasures?: string[]
  /**
   * Start of the period after which the retention checks whether the session has a message.
   */
  reviewAt?: Date
  /** Time of the next review of a session that is kept although its period is over. */
  postponedUntil?: Date
  /**
   * Ids of verified visitors whose own sessions in this browser have been removed. An erasure of
   * such a visitor finds this session by these ids.
   */
  linkedSubjectIds?: string[]
}

/** End of a session's latest grant, and time at which the session expires if it is not renewed. */
type GrantEnds = Pick<Session, 'grantExpiresAt' | 'renewableUntil'>

/** The queries of conversations that visitors' sessions use. */
interface ConversationRecords {
  /** Inserts a conversation. Returns false and changes nothing if it exists. */
  insertConversation(core: Core, conversation: VisitorConversation): Promise<boolean>
  findConversations(core: Core, conversationIds: string[]): Promise<VisitorConversation[]>
  /**
   * Stores the session that has taken over the conversation from an earlier session. `sequence` is
   * the position of the takeover event in the log. Changes nothing if a higher sequence is stored.
   */
  setLastSession(
    core: Core,
    conversationId: string,
    lastSession: { sequence: number; sessionId: string },
  ): Promise<void>
}

/** The room of conversations sets them. */
export const conversationRecordsOf = perCore((): ConversationRecords => {
  throw new Error('the core has no conversations')
})

export const sessionStoreOf = perCore(({ db: { sessions, erasures } }) => {
  const { add: update } = createBatcher((updates: DocumentUpdate<SessionDocument>[]) => updateEach(sessions, updates))

  /**
   * Returns an object with one field, which lists the ids of unfinished erasures of these visitors.
   * Returns an empty object when there are none.
   */
  async function erasureField(field: 'afterErasures' | 'joinedAfterErasures', visitorIds: (string | undefined)[]) {
    const ids = await openErasures(erasures, visitorIds)
    return ids.length > 0 ? { [field]: ids } : {}
  }

  const afterErasures = ({ visitorId, identity }: Pick<Session, 'visitorId' | 'identity'>) =>
    erasureField('afterErasures', [visitorId, identity?.subjectId])

  return {
    /** Inserts a session. Returns false and changes nothing when the session exists. */
    async insertOnce({ sessionId, ...rest }: Session) {
      const session = { ...rest, reviewAt: rest.renewableUntil, ...(await afterErasures(rest)) }
      const { upsertedCount } = await sessions.updateOne(
        { _id: sessionId },
        { $setOnInsert: session },
        { upsert: true },
      )
      return upsertedCount === 1
    },

    async find(sessionIds: string[]): Promise<Session[]> {
      return (await sessions.find({ _id: { $in: sessionIds } }).toArray()).map(toSession)
    },

    sitesOf: (conversationId: string) => sessions.distinct('publicSiteKey', { conversationId }),
    /**
     * Ends an active session. Returns false when it was not active. `closedBy` is the visitor's
     * operation that closes it.
     */
    async end(sessionId: string, status: Exclude<SessionStatus, 'active'>, closedBy?: string) {
      const { modifiedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { status, closedBy } },
      )
      return modifiedCount === 1
    },

    /**
     * Returns the ids of all sessions of a browser or a verified visitor that could have a valid grant
     * at `at`. The ids include sessions that were ended, because the process that ended them may have
     * sent no wake-up.
     */
    async unendedOf({ browserIds, subjectIds }: Pick<VisitorIds, 'browserIds' | 'subjectIds'>, at: Date) {
      const wanted = [{ visitorId: { $in: browserIds } }, { 'identity.subjectId': { $in: subjectIds } }]
      const found = wanted.map((visitor) =>
        sessions.find({ ...visitor, endsAt: { $gt: at } }, { projection: { _id: 1 } }).toArray(),
      )
      return [...new Set((await Promise.all(found)).flat().map(({ _id }) => _id))]
    },

    async endAll(sessionIds: string[], status: Exclude<SessionStatus, 'active'>) {
      if (sessionIds.length > 0)
        await sessions.updateMany({ _id: { $in: sessionIds }, status: 'active' }, { $set: { status } })
    },

    /** Replaces the identity of an active session. Returns false when it was not active. */
    async refreshIdentity(sessionId: string, identity: Identity, times: GrantEnds) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { identity }, $max: times },
      )
      return matchedCount === 1
    },

    /**
     * Closes an active session that another one replaces. Returns false when it was not active.
     * `identity` is set when the session is anonymous; it is the identity of the new session.
     */
    async replaceBy(
      sessionId: string,
      successor: { operation: string; sessionId: string },
      identity: Identity | undefined,
    ) {
      const joined = identity && (await erasureField('joinedAfterErasures', [identity.subjectId]))
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { status: 'closed', successor, identity, ...joined } },
      )
      return matchedCount === 1
    },

    /**
     * Records that an active session has written a message. Returns false when the session is not
     * active.
     */
    async markWritten(sessionId: string) {
      const { matchedCount } = await sessions.updateOne(
        { _id: sessionId, status: 'active' },
        { $set: { hasWritten: true } },
      )
      return matchedCount === 1
    },

    /** Returns the verified visitor's sessions for which `setConversation` was not called yet. */
    async findProvisional(subjectId: string): Promise<Session[]> {
      const filter = { 'identity.subjectId': subjectId, provisionalFor: { $exists: true }, status: 'active' as const }
      return (await sessions.find(filter).toArray()).map(toSession)
    },

    /**
     * Sets the conversation of a session that has replaced another one. Later calls change nothing.
     */
    async setConversation(sessionId: string, conversationId: string) {
      await sessions.updateOne(
        { _id: sessionId, provisionalFor: { $exists: true } },
        { $set: { conversationId }, $unset: { provisionalFor: '' } },
      )
    },

    /** Stores the keyed hash of the network that the browser uses now. */
    async setNetwork(sessionId: string, network: string) {
      await sessions.updateOne({ _id: sessionId }, { $set: { network } })
    },

    /**
     * Stores the page. With `policyVersion`, stores it only if the session's latest decision grants
     * this version of the consent policy.
     */
    async setPageContext(sessionId: string, pageContext: PageContext, at: Date, policyVersion?: string) {
      const change = { $set: { pageContext, pageContextAt: at } }
      if (policyVersion === undefined) await update({ filter: { _id: sessionId }, update: change })
      else await sessions.updateOne({ _id: sessionId, ...lastDecision('granted', policyVersion) }, change)
    },

    /** Stores that the panel was closed. Returns false when the session is not active. */
    async closePanel(sessionId: string, at: Date) {
      const active = { _id: sessionId, status: 'active' as const }
      return (await sessions.updateOne(active, { $set: { panelClosedAt: at } })).matchedCount === 1
    },

    /** Removes the time at which the panel was closed, if it was closed at `until` or earlier. */
    async openPanel(sessionId: string, until: Date) {
      await sessions.updateOne({ _id: sessionId, panelClosedAt: { $lte: until } }, { $unset: { panelClosedAt: '' } })
    },

    /**
     * Extends the grant and rotates the token. Returns false when another renewal changed the session
     * first.
     */
    renew(sessionId: string, from: number, times: GrantEnds, rotation: { previousUntil: Date; operation: string }) {
      const generation = from + 1
      return update({
        filter: {
          _id: sessionId,
          status: 'active',
          $or: [
            { 'renewal.generation': from },
            { 'renewal.generation': generation, 'renewal.operation': rotation.operation },
          ],
        },
        update: { $max: times, $set: { renewal: { generation, ...rotation } } },
      })
    },

    /**
     * Extends the grant without rotating the token. Returns false when the generation has changed.
     */
    extend: (sessionId: string, generation: number, times: GrantEnds) =>
      update({
        filter: { _id: sessionId, status: 'active', 'renewal.generation': generation },
        update: { $max: times },
      }),
    /** Returns the host's ids of the verified visitors of each conversation. */
    async subjectsIn(conversationIds: string[]): Promise<Map<string, string[]>> {
      if (conversationIds.length === 0) return new Map()
      const found = await sessions
        .find(
          { conversationId: { $in: conversationIds }, 'identity.externalSubject': { $exists: true } },
          { projection: { conversationId: 1, 'identity.externalSubject': 1 } },
        )
        .toArray()
      const subjects = new Map<string, string[]>()
      for (const { conversationId, identity } of found)
        if (identity) subjects.set(conversationId, [...(subjects.get(conversationId) ?? []), identity.externalSubject])
      return subjects
    },
  }
})

/** Matches sessions whose latest consent decision is this one. */
function lastDecision(decision: ConsentDecision['decision'], policyVersion: string): Filter<SessionDocument> {
  const last = { $last: { $ifNull: ['$consents', []] } }
  return {
    $expr: {
      $let: {
        vars: { last },
        in: { $and: [{ $eq: ['$$last.decision', decision] }, { $eq: ['$$last.policyVersion', policyVersion] }] },
      },
    },
  }
}

export function toSession(document: SessionDocument): Session {
  const {
    _id,
    afterErasures: _,
    joinedAfterErasures: __,
    reviewAt: ___,
    postponedUntil: ____,
    linkedSubjectIds: _____,
    ...rest
  } = document
  return { sessionId: _id, ...rest }
}
