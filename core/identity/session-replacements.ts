import { isSessionBanned } from '../bans/bans.ts'
import { inheritConsent } from '../consents/consents.ts'
import { keepPage, pageAtStart } from '../consents/observations.ts'
import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { insertConversation } from '../log/conversation-store.ts'
import { logOf } from '../log/event-log.ts'
import { operationKeys } from '../log-event.ts'
import { grantOf, type Identity, type Issued, newConversation, newSession, type Session } from '../sessions/model.ts'
import { sessionContentsOf } from '../sessions/session-content.ts'
import { erasureField, sessionStoreOf, updateActive } from '../sessions/session-store.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import type { Installation } from '../workspaces/model.ts'
import { decideConversation } from './subjects.ts'

/**
 * Replaces a session with a new one, whose ids are derived from the operation. Of concurrent
 * operations, the one whose write closes the old session succeeds. So no client gets the new
 * credentials before that write.
 */
export async function replaceSession(
  core: Core,
  old: Session,
  identity: Identity | undefined,
  operation: string,
  installation: Installation,
): Promise<Issued> {
  const pageContext = pageAtStart(core, installation, old.pageContext)
  const sessionId = core.plannedIds('ses', operation)
  const session = replacementOf(core, old, {
    sessionId,
    conversationId: core.plannedIds('cnv', operation),
    identity,
    pageContext,
  })
  if (!session.operationSessionId) await insertConversation(core, newConversation(session, core.now()))
  await sessionStoreOf(core).insertOnce(session)
  // Checked only now, because a ban that is set during the insert may not find the session.
  if (await isSessionBanned(core, session)) {
    await sessionStoreOf(core).end(sessionId, 'banned')
    throw new ServiceError('VisitorBanned')
  }
  const joined = old.identity ? undefined : identity
  if (joined) await appendIdentified(core, old)
  return wakeupsOf(core).changing([old.sessionId], async () => {
    const erasures = joined && (await erasureField(core, 'joinedAfterErasures', [joined.subjectId]))
    const successor = { operation, sessionId }
    const $set = { status: 'closed' as const, successor, identity: joined, ...erasures }
    if (!(await updateActive(core, old.sessionId, { $set }))) {
      const current = await latestSession(core, old.sessionId)
      if (current.successor?.operation !== operation) {
        await sessionStoreOf(core).end(sessionId, 'closed')
        await visitorAccessOf(core).rejectEnded(old.sessionId)
      }
    }
    return complete(core, await latestSession(core, old.sessionId), operation, installation)
  })
}

/** Completes an operation whose first run died after it had closed the session. */
export async function repeatReplacement(
  core: Core,
  old: Session,
  operation: string,
  installation: Installation,
): Promise<Issued> {
  const issued = await complete(core, old, operation, installation)
  await wakeupsOf(core).stateChanged(old.sessionId)
  return issued
}

/** Error: GrantInvalid if the session does not exist. */
export async function latestSession(core: Core, sessionId: string): Promise<Session> {
  const [session] = await sessionStoreOf(core).find([sessionId])
  if (!session) throw new ServiceError('GrantInvalid')
  return session
}

/** Completes the operation that closed a session. Returns the content of the new session. */
async function complete(core: Core, old: Session, operation: string, installation: Installation): Promise<Issued> {
  if (old.successor?.operation !== operation) throw new ServiceError('SessionClosed')
  const session = await decideConversation(core, await latestSession(core, old.successor.sessionId), old)
  if (session.conversationId === old.conversationId) {
    const { sequence } = await appendIdentified(core, old)
    // Does nothing if a higher sequence is stored.
    const $max = { lastSession: { sequence, sessionId: session.sessionId } }
    await core.db.conversations.updateOne({ _id: session.conversationId }, { $max })
  }
  // The replaced anonymous session now belongs to the verified visitor, with its consent decision. After a
  // logout another person may use the browser, and must decide anew.
  if (session.identity) await inheritConsent(core, session)
  const isJoining = session.operationSessionId !== undefined
  if (isJoining && old.pageContext && old.pageContextAt && !session.pageContext)
    await keepPage(core, session.sessionId, installation, old.pageContext, old.pageContextAt)
  const isNew = session.conversationId === core.plannedIds('cnv', operation)
  return sessionContentsOf(core).issue(session, grantOf(session), { state: isNew ? 'new' : 'continued' })
}

/** Appends the event that the streams of an anonymous session get before the event that ends it. */
async function appendIdentified(core: Core, { sessionId, conversationId }: Session) {
  const type = 'session.identified'
  const operationKey = operationKeys.session(sessionId, type)
  return (await logOf(core).append({ conversationId, type, sessionId, operationKey, inputHash: type })).event
}

/**
 * Returns the session that replaces another one. If it belongs to another person, it keeps only the
 * browser and the language of the old session.
 */
function replacementOf(
  core: Core,
  old: Session,
  { pageContext, ...planned }: Pick<Session, 'sessionId' | 'conversationId' | 'identity' | 'pageContext'>,
): Session {
  const { workspaceId, connectionId, connectionVersion, publicSiteKey, origin, visitorId, clientInstanceId } = old
  const { locale, network, pageContextAt, panelClosedAt } = old
  const facts = {
    ...planned,
    workspaceId,
    connectionId,
    connectionVersion,
    publicSiteKey,
    origin,
    visitorId,
    clientInstanceId,
    network,
    locale,
    provisionalFor: planned.identity && old.sessionId,
    // An anonymous session is always replaced by a verified one, which belongs to the same person.
    ...(old.identity === undefined && {
      operationSessionId: old.sessionId,
      ...(pageContext && pageContextAt && { pageContext, pageContextAt }),
      ...(panelClosedAt && { panelClosedAt }),
    }),
  }
  return newSession(facts, core.now(), core.config)
}
