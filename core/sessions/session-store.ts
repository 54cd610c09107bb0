import type { UpdateFilter } from 'mongodb'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { type DocumentUpdate, updateEach } from '../mongodb/update-each.ts'
import { findIds } from '../mongodb/with-id.ts'
import type { Session, SessionStatus } from './model.ts'

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

/** Returns the unfinished erasures as the value of this field, if there are any. */
export async function erasureField(
  core: Core,
  field: 'afterErasures' | 'joinedAfterErasures',
  visitorIds: (string | undefined)[],
) {
  const ids = await openErasures(core, visitorIds)
  return ids.length > 0 ? { [field]: ids } : {}
}

/** Returns false when the session is not active. */
export async function updateActive({ db }: Core, _id: string, change: UpdateFilter<SessionDocument>) {
  return (await db.sessions.updateOne({ _id, status: 'active' }, change)).matchedCount === 1
}

export const sessionStoreOf = perCore((core) => {
  const { sessions } = core.db
  return {
    async insertOnce({ sessionId, ...rest }: Session) {
      const afterErasures = await erasureField(core, 'afterErasures', [rest.visitorId, rest.identity?.subjectId])
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
      updateActive(core, sessionId, { $set: { status, closedBy } }),
    /** Updates sessions, together with other calls. Returns false if none matches. */
    update: createBatcher((updates: DocumentUpdate<SessionDocument>[]) => updateEach(sessions, updates)).add,

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
