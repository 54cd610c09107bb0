import type { Collection, Filter } from 'mongodb'
import type { Session, StoredConsent } from '../sessions/model.ts'
import type { SessionDocument } from '../sessions/session-store.ts'

export interface ConsentStore {
  /**
   * Adds a decision to a session. Changes nothing if the session already has a decision of the same
   * operation. Returns false if the session is not active.
   */
  add(sessionId: string, consent: StoredConsent): Promise<boolean>
  /** Returns the ids of the other active sessions of the same visitor on the same installation. */
  others(session: Session): Promise<string[]>
  /**
   * Adds a decision to the other active sessions of the same visitor on the same installation.
   * Returns the ids of all these sessions, including those that already had the decision.
   */
  addToOthers(session: Session, consent: StoredConsent): Promise<string[]>
  /**
   * Keeps the latest decision of a session that will be removed, because an earlier decision would
   * otherwise apply again. Adds it to the visitor's newest other session on the same installation,
   * except those in `removedIds`. Changes nothing if there is no such session.
   */
  keepLatest(session: Session, removedIds: string[]): Promise<void>
  /** Returns the latest decision in another session of the same visitor on the installation. */
  latestOf(session: Session): Promise<StoredConsent | undefined>
}

/** Maximum number of decisions kept per session. */
const consentsMax = 20

export function createConsentStore({ sessions }: { sessions: Collection<SessionDocument> }): ConsentStore {
  /** A denial also removes the page that was stored while consent was granted. */
  const adding = (consent: StoredConsent) => ({
    ...(consent.decision === 'denied' && { $unset: { pageContext: '' as const, pageContextAt: '' as const } }),
    $push: { consents: { $each: [consent], $sort: { decidedAt: 1 as const }, $slice: -consentsMax } },
  })
  const unlessRecorded = ({ operation }: StoredConsent) => ({ 'consents.operation': { $ne: operation } })

  async function others(session: Session) {
    const active = { ...othersOf(session), status: 'active' as const }
    return (await sessions.find(active, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id)
  }

  return {
    async add(sessionId, consent) {
      const active = { _id: sessionId, status: 'active' as const }
      const { matchedCount } = await sessions.updateOne({ ...active, ...unlessRecorded(consent) }, adding(consent))
      return matchedCount === 1 || (await sessions.findOne(active, { projection: { _id: 1 } })) !== null
    },

    others,

    async addToOthers(session, consent) {
      const ids = await others(session)
      if (ids.length > 0)
        await sessions.updateMany({ _id: { $in: ids }, status: 'active', ...unlessRecorded(consent) }, adding(consent))
      return ids
    },

    async keepLatest(session, removedIds) {
      const latest = session.consents?.at(-1)
      // A decision from before the session began is a copy of an earlier session's decision.
      if (!latest || latest.decidedAt < session.createdAt) return
      const [heir] = await sessions
        .find({ ...othersOf(session), _id: { $nin: removedIds } }, { projection: { _id: 1 } })
        .sort({ createdAt: -1 })
        .limit(1)
        .toArray()
      if (heir) await sessions.updateOne({ _id: heir._id, ...unlessRecorded(latest) }, adding(latest))
    },

    async latestOf(session) {
      // Erasures of the visitor that began before the session do not remove the session. So the
      // session must not copy data that these erasures remove.
      const own = await sessions.findOne({ _id: session.sessionId }, { projection: { afterErasures: 1 } })
      const kept = (own?.afterErasures ?? []).map((erasureId) => ({
        $or: [{ afterErasures: erasureId }, { joinedAfterErasures: erasureId }],
      }))
      const [found] = await sessions
        .find(
          { ...othersOf(session), consents: { $exists: true }, ...(kept.length > 0 && { $and: kept }) },
          { projection: { consents: { $slice: -1 } } },
        )
        .sort({ 'consents.decidedAt': -1 })
        .limit(1)
        .toArray()
      return found?.consents?.[0]
    },
  }
}

/**
 * Matches the other sessions of the same visitor on the same installation. These are the anonymous
 * sessions of the browser, or all sessions of the verified subject.
 */
function othersOf({ sessionId, publicSiteKey, visitorId, identity }: Session): Filter<SessionDocument> {
  return {
    ...(identity ? { 'identity.subjectId': identity.subjectId } : { visitorId, identity: { $exists: false } }),
    publicSiteKey,
    _id: { $ne: sessionId },
  }
}
