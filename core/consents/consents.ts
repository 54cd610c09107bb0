import type { Filter } from 'mongodb'
import type { Core } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { hasDocument, idOnly, idsOf } from '../mongodb/with-id.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { ConsentDecision, Session, StoredConsent, Visitor, VisitorOperation } from '../sessions/model.ts'
import type { SessionDocument } from '../sessions/session-store.ts'
import { directoryOf, oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import type { Installation } from '../workspaces/model.ts'

/**
 * Stores the visitor's decision for all live sessions of the same browser or verified subject on
 * the installation. Errors: those of VisitorAccess.authorize and of Idempotency.once,
 * `ValidationFailed` if `policyVersion` is not the current version of the policy.
 */
export async function recordConsent(
  core: Core,
  given: VisitorOperation & Pick<ConsentDecision, 'policyVersion' | 'decision'>,
): Promise<Repeatable<ConsentDecision>> {
  const { credentials, policyVersion, decision, idempotencyKey } = given
  const { session } = await visitorAccessOf(core).authorize(credentials)
  const { sessionId, publicSiteKey } = session
  validate(field('/decision', decision, oneOf<ConsentDecision['decision']>('granted', 'denied')))
  async function record(operation: string, decidedAt: Date): Promise<ConsentDecision> {
    const policy = await presentPolicy(core, publicSiteKey, policyVersion)
    const current = await visitorAccessOf(core).live(sessionId)
    const decided = { decision, ...policy, decidedAt }
    const others = await otherSessionIds(core, current)
    return wakeupsOf(core).changing([sessionId, ...others], async () => {
      if (!(await addConsent(core, sessionId, { ...decided, operation })))
        await visitorAccessOf(core).rejectEnded(sessionId)
      const all = await addConsentToOthers(core, current, { ...decided, operation })
      // Sessions that began after the first read.
      await wakeupsOf(core).stateChanged(...all.filter((id) => !others.includes(id)))
      return decided
    })
  }
  const input = { policyVersion, decision }
  return oncePerSession(core, 'POST /sessions/consent', session, idempotencyKey, input, record)
}

/**
 * Throws `ConsentRequired` if the installation requires consent that the visitor has not granted.
 * `isRepeated` returns whether the operation was accepted before; a repeat is never refused.
 */
export async function requireConsent(
  core: Core,
  { session, installation }: Visitor,
  isRepeated: () => Promise<boolean>,
) {
  if (hasConsented(session, installation)) return
  // The cached state may be older than a decision that another core has stored.
  const [fresh, site] = await Promise.all([
    directoryOf(core).sessions.reload(session.sessionId),
    directoryOf(core).installations.reload(installation.publicSiteKey),
  ])
  if (fresh && site && hasConsented(fresh, site)) return
  if (!(await isRepeated())) throw new ServiceError('ConsentRequired')
}

/**
 * Gives a new session the visitor's latest decision, before its credentials are returned. A decision that
 * is recorded at the same time reaches the session either here or in `recordConsent`.
 */
export async function inheritConsent(core: Core, session: Session) {
  const latest = await storedConsentOf(core, session)
  if (latest) await addConsent(core, session.sessionId, latest)
}

async function presentPolicy(core: Core, publicSiteKey: string, policyVersion: string) {
  const { policyUrl, policyVersion: present } =
    (await directoryOf(core).installations.reload(publicSiteKey))?.consent ?? {}
  if (policyUrl === undefined || present !== policyVersion) throw invalid('/policyVersion', 'const')
  return { policyUrl, policyVersion }
}

/** The visitor's latest decision, which may be about an earlier version of the policy. */
export const latestConsent = ({ consents }: Pick<Session, 'consents'>): ConsentDecision | undefined => consents?.at(-1)

/** Whether the visitor has agreed to the present version of the policy, if the installation requires it. */
export function hasConsented(session: Session, { consent }: Pick<Installation, 'consent'>) {
  if (!consent?.required) return true
  const latest = latestConsent(session)
  return latest?.decision === 'granted' && latest.policyVersion === consent.policyVersion
}

const consentsMax = 20

/** Changes nothing on a repeat of the operation. Returns false if the session is not active. */
async function addConsent(core: Core, sessionId: string, consent: StoredConsent): Promise<boolean> {
  const active = { _id: sessionId, status: 'active' as const }
  const { matchedCount } = await core.db.sessions.updateOne({ ...active, ...unlessRecorded(consent) }, adding(consent))
  return matchedCount === 1 || (await hasDocument(core.db.sessions, active))
}

/** Returns the ids of the visitor's other active sessions on the installation. */
async function otherSessionIds(core: Core, session: Session): Promise<string[]> {
  const active = { ...othersOf(session), status: 'active' as const }
  return idsOf(await core.db.sessions.find(active, idOnly).toArray())
}

/** Returns the ids of these sessions, including those that already had the decision. */
async function addConsentToOthers(core: Core, session: Session, consent: StoredConsent): Promise<string[]> {
  const ids = await otherSessionIds(core, session)
  if (ids.length > 0)
    await core.db.sessions.updateMany(
      { _id: { $in: ids }, status: 'active', ...unlessRecorded(consent) },
      adding(consent),
    )
  return ids
}

/**
 * Keeps the latest decision of a session that will be removed, because an earlier decision would otherwise
 * apply again. Adds it to the visitor's newest other session on the installation, except `removedIds`.
 */
export async function keepLatestConsent(core: Pick<Core, 'db'>, session: Session, removedIds: string[]) {
  const latest = session.consents?.at(-1)
  // A decision from before the session began is a copy of an earlier session's decision.
  if (!latest || latest.decidedAt < session.createdAt) return
  const heir = await core.db.sessions.findOne(
    { ...othersOf(session), _id: { $nin: removedIds } },
    { ...idOnly, sort: { createdAt: -1 } },
  )
  if (heir) await core.db.sessions.updateOne({ _id: heir._id, ...unlessRecorded(latest) }, adding(latest))
}

/** The latest decision in another session of the same visitor on the installation. */
async function storedConsentOf(core: Core, session: Session): Promise<StoredConsent | undefined> {
  // Erasures that began before the session do not remove it, so it must not copy what they remove.
  const own = await core.db.sessions.findOne({ _id: session.sessionId }, { projection: { afterErasures: 1 } })
  const kept = (own?.afterErasures ?? []).map((erasureId) => ({
    $or: [{ afterErasures: erasureId }, { joinedAfterErasures: erasureId }],
  }))
  const found = await core.db.sessions.findOne(
    { ...othersOf(session), consents: { $exists: true }, ...(kept.length > 0 && { $and: kept }) },
    { projection: { consents: { $slice: -1 } }, sort: { 'consents.decidedAt': -1 } },
  )
  return found?.consents?.[0]
}

/** A denial also removes the page that was stored while consent was granted. */
const adding = (consent: StoredConsent) => ({
  ...(consent.decision === 'denied' && { $unset: { pageContext: '' as const, pageContextAt: '' as const } }),
  $push: { consents: { $each: [consent], $sort: { decidedAt: 1 as const }, $slice: -consentsMax } },
})

const unlessRecorded = ({ operation }: StoredConsent) => ({ 'consents.operation': { $ne: operation } })

/** Matches the visitor's other sessions: the anonymous ones of the browser, or all of the verified subject. */
function othersOf({ sessionId, publicSiteKey, visitorId, identity }: Session): Filter<SessionDocument> {
  return {
    ...(identity ? { 'identity.subjectId': identity.subjectId } : { visitorId, identity: { $exists: false } }),
    publicSiteKey,
    _id: { $ne: sessionId },
  }
}
