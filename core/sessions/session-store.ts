import type { Filter, UpdateFilter } from 'mongodb'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { type DocumentUpdate, updateEach } from '../mongodb/update-each.ts'
import { findIds } from '../mongodb/with-id.ts'
import type { Identity, PageContext, Session, SessionStatus } from './model.ts'
import type { VisitorIds } from './visitor-ids.ts'

export type SessionDocument = Omit<Session, 'sessionId'> & {
  _id: string
  /** Erasures of the visitor that were unfinished when the session began. They do not remove it. */
  afterErasures?: string[]
  /** Like `afterErasures`, for the verified visitor to whom an identification linked this anonymous session. */
  joinedAfterErasures?: string[]
  /** Start of the period after which the retention checks whether the session has a message. */
  reviewAt?: Date
  /** Time of the next review of a session that is kept although its period is over. */
  postponedUntil?: Date
  /**
   * Ids of verified visitors whose own sessions in this browser have been removed. An erasure of
   * such a visitor finds this session by these ids.
   */
  linkedSubjectIds?: string[]
}

type GrantEnds = Pick<Session, 'grantExpiresAt' | 'renewableUntil'>

/**
 * Returns the unfinished erasures of any of these browsers and verified visitors. New sessions, and new
 * conversations of verified visitors, store their ids, so that these erasures do not remove them.
 */
export async function openErasures({ db }: Pick<Core, 'db'>, visitorIds: (string | undefined)[]): Promise<string[]> {
  const unfinished = {
    'traces.visitorIds': { $in: visitorIds.filter((id) => id !== undefined) },
    isSwept: { $exists: false },
  } as const
  return findIds(db.erasures, unfinished)
}

export const sessionStoreOf = perCore((core) => {
  const { sessions } = core.db
  const { add: update } = createBatcher((updates: DocumentUpdate<SessionDocument>[]) => updateEach(sessions, updates))

  /** Returns false when the session is not active. */
  async function updateActive(_id: string, change: UpdateFilter<SessionDocument>) {
    return (await sessions.updateOne({ _id, status: 'active' }, change)).matchedCount === 1
  }

  /** Returns the unfinished erasures as the value of this field, if there are any. */
  async function erasureField(field: 'afterErasures' | 'joinedAfterErasures', visitorIds: (string | undefined)[]) {
    const ids = await openErasures(core, visitorIds)
    return ids.length > 0 ? { [field]: ids } : {}
  }

  return {
    async insertOnce({ sessionId, ...rest }: Session) {
      const afterErasures = await erasureField('afterErasures', [rest.visitorId, rest.identity?.subjectId])
      const session = { ...rest, reviewAt: rest.renewableUntil, ...afterErasures }
      const inserted = await sessions.updateOne({ _id: sessionId }, { $setOnInsert: session }, { upsert: true })
      return inserted.upsertedCount === 1
    },

    async find(sessionIds: string[]) {
      return (await sessions.find({ _id: { $in: sessionIds } }).toArray()).map(toSession)
    },

    sitesOf: (conversationId: string) => sessions.distinct('publicSiteKey', { conversationId }),
    /** Returns false if the session was not active. `closedBy` is the visitor's operation that closes it. */
    end: (sessionId: string, status: Exclude<SessionStatus, 'active'>, closedBy?: string) =>
      updateActive(sessionId, { $set: { status, closedBy } }),

    /**
     * Returns the ids of all sessions of a browser or a verified visitor that could have a valid grant
     * at `at`, also of ended ones, because the process that ended them may have sent no wake-up.
     */
    async unendedOf({ browserIds, subjectIds }: Pick<VisitorIds, 'browserIds' | 'subjectIds'>, at: Date) {
      const wanted = [{ visitorId: { $in: browserIds } }, { 'identity.subjectId': { $in: subjectIds } }]
      const found = wanted.map((visitor) => findIds(sessions, { ...visitor, endsAt: { $gt: at } }))
      return [...new Set((await Promise.all(found)).flat())]
    },

    async endAll(sessionIds: string[], status: Exclude<SessionStatus, 'active'>) {
      if (sessionIds.length > 0)
        await sessions.updateMany({ _id: { $in: sessionIds }, status: 'active' }, { $set: { status } })
    },

    /** Returns false when the session was not active. */
    refreshIdentity: (sessionId: string, identity: Identity, times: GrantEnds) =>
      updateActive(sessionId, { $set: { identity }, $max: times }),

    /**
     * Closes a session that another one replaces. Returns false when it was not active. `identity` is the
     * one of the new session if the closed session is anonymous.
     */
    async replaceBy(
      sessionId: string,
      successor: { operation: string; sessionId: string },
      identity: Identity | undefined,
    ) {
      const joined = identity && (await erasureField('joinedAfterErasures', [identity.subjectId]))
      return updateActive(sessionId, { $set: { status: 'closed', successor, identity, ...joined } })
    },

    /** Records that the session has written a message. Returns false when it is not active. */
    markWritten: (sessionId: string) => updateActive(sessionId, { $set: { hasWritten: true } }),

    /** Returns the verified visitor's sessions for which `setConversation` was not called yet. */
    async findProvisional(subjectId: string) {
      const filter = { 'identity.subjectId': subjectId, provisionalFor: { $exists: true }, status: 'active' as const }
      return (await sessions.find(filter).toArray()).map(toSession)
    },

    /** Sets the conversation of a session that has replaced another one. Later calls change nothing. */
    async setConversation(sessionId: string, conversationId: string) {
      await sessions.updateOne(
        { _id: sessionId, provisionalFor: { $exists: true } },
        { $set: { conversationId }, $unset: { provisionalFor: '' } },
      )
    },

    async setNetwork(sessionId: string, network: string) {
      await sessions.updateOne({ _id: sessionId }, { $set: { network } })
    },

    /**
     * Stores the page. With `policyVersion`, only if the session's latest decision grants this version of
     * the consent policy.
     */
    async setPageContext(sessionId: string, pageContext: PageContext, at: Date, policyVersion?: string) {
      const change = { $set: { pageContext, pageContextAt: at } }
      if (policyVersion === undefined) await update({ filter: { _id: sessionId }, update: change })
      else await sessions.updateOne({ _id: sessionId, ...hasGranted(policyVersion) }, change)
    },

    /** Returns false when the session is not active. */
    closePanel: (sessionId: string, at: Date) => updateActive(sessionId, { $set: { panelClosedAt: at } }),

    /** Removes the time at which the panel was closed, if that was at `until` or earlier. */
    async openPanel(sessionId: string, until: Date) {
      await sessions.updateOne({ _id: sessionId, panelClosedAt: { $lte: until } }, { $unset: { panelClosedAt: '' } })
    },

    /** Extends the grant and rotates the token. Returns false when another renewal came first. */
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

    /** Extends the grant without rotating the token. Returns false when the generation has changed. */
    extend: (sessionId: string, generation: number, times: GrantEnds) =>
      update({
        filter: { _id: sessionId, status: 'active', 'renewal.generation': generation },
        update: { $max: times },
      }),
    /** Returns the host's ids of the verified visitors of each conversation. */
    async subjectsIn(conversationIds: string[]) {
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

/** Matches sessions whose latest consent decision grants this version of the policy. */
function hasGranted(policyVersion: string): Filter<SessionDocument> {
  const granted = [{ $eq: ['$$last.decision', 'granted'] }, { $eq: ['$$last.policyVersion', policyVersion] }]
  return {
    $expr: { $let: { vars: { last: { $last: { $ifNull: ['$consents', []] } } }, in: { $and: granted } } },
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
