import type { CreateSessionRequest, RenewSessionRequest } from '#proto/session/v1/session_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { findSession, followAddress, isBrowserBanned } from '../bans/bans.ts'
import { isNetworkBanned, networkOf } from '../bans/network-bans.ts'
import { inheritConsent } from '../consents/consents.ts'
import { authorizeReport, closePanel, keepPage, pageAtStart } from '../consents/observations.ts'
import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { epochIn } from '../ids.ts'
import { insertConversation } from '../log/conversation-store.ts'
import { repairLocale } from '../repairs.ts'
import { field, text, validate } from '../rules.ts'
import { grantsOf } from '../sessions/grants.ts'
import {
  type GrantTimes,
  grantOf,
  grantTimes,
  type Issued,
  newConversation,
  newSession,
  type PageContext,
  type Session,
  type SessionContent,
  storedTimes,
  type VisitorCredentials,
  type VisitorOperation,
} from '../sessions/model.ts'
import { sessionContentsOf } from '../sessions/session-content.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { directoryOf, oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { browserIdOn } from '../sessions/visitor-ids.ts'
import { parseEventId } from '../streams/replay-window.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { installationFor } from '../workspaces/workspaces.ts'

type NewSession = Omit<ProtoFields<CreateSessionRequest>, 'pageContext'> & { pageContext?: PageContext }

export async function createSession(
  core: Core,
  { idempotencyKey, ...request }: NewSession,
): Promise<Repeatable<SessionContent>> {
  await installationFor(core, request.publicSiteKey, request.origin)
  validate(field('/clientInstanceId', request.clientInstanceId, text(1, 128)))
  // A repeat may come from another address, for example after a change from Wi-Fi to mobile.
  const { origin, clientAddress: _, ...input } = request
  const { content, replayed } = await core.idempotency.once({
    scope: ['POST /sessions', request.publicSiteKey, origin],
    key: idempotencyKey,
    input,
    keptFor: core.config.SESSION_CREATION_REPEAT_SECONDS,
    run: (operation, startedAt) => start(core, request, [operation, startedAt.toISOString()]),
  })
  return { content: await sessionContentsOf(core).contentOf(content), replayed }
}

/**
 * With the scope `continuity`, ends the session. If it is verified, the visitor's next identification then
 * begins a new conversation. With the scope `panel`, stores that the panel was closed. A repeated call may
 * use the grant of the closed session. Errors: those of VisitorAccess.authorize and of Idempotency.once.
 */
export async function closeSession(
  core: Core,
  { credentials, scope, idempotencyKey }: VisitorOperation & { scope: 'panel' | 'continuity' },
): Promise<Repeatable<{ sessionId: string; state: 'active' | 'closed' }>> {
  const { session } = await visitorAccessOf(core).authorize(credentials, { closedToo: true })
  return oncePerSession(core, 'POST /sessions/close', session, idempotencyKey, { scope }, (operation) =>
    closeOnce(core, session.sessionId, scope, operation),
  )
}

/**
 * Stores the valid parts of the page that the visitor's browser reports. Errors: those of
 * VisitorAccess.authorize, RouteNotAdvertised, ConsentRequired.
 */
export async function reportPage(
  core: Core,
  report: { credentials: VisitorCredentials; pageContext: PageContext; idempotencyKey?: string },
): Promise<{ replayed: boolean }> {
  const { credentials, pageContext, idempotencyKey } = report
  const { session, installation } = await authorizeReport(core, credentials, 'pageContext')
  async function keep() {
    await keepPage(core, session.sessionId, installation, pageContext, dateOf(core))
    return true
  }
  if (idempotencyKey === undefined) {
    await keep()
    return { replayed: false }
  }
  const { replayed } = await oncePerSession(core, 'POST /context/page', session, idempotencyKey, pageContext, keep)
  return { replayed }
}

/** Errors: `NotFound` for an unknown session or a session of another workspace. */
export async function revokeSession(core: Core, sessionId: string, workspaceId?: string): Promise<Session> {
  await findSession(core, sessionId, workspaceId)
  await wakeupsOf(core).changing([sessionId], () => sessionStoreOf(core).end(sessionId, 'revoked'))
  return findSession(core, sessionId)
}

/** All runs of the operation, even concurrent ones, create the same session. */
async function start(core: Core, request: Omit<NewSession, 'idempotencyKey'>, operation: string[]): Promise<Issued> {
  const { origin, clientInstanceId } = request
  const installation = await installationFor(core, request.publicSiteKey, origin)
  const { connectionId, workspaceId, publicSiteKey, consent } = installation
  const pageContext = pageAtStart(core, installation, request.pageContext)
  const connection = await directoryOf(core).connections.get(connectionId)
  if (connection?.status !== 'enabled') throw new ServiceError('ConnectionDisabled')
  const network = await networkOf(core, connectionId, request.clientAddress)

  const session = newSession(
    {
      sessionId: core.plannedIds('ses', ...operation),
      workspaceId,
      connectionId,
      connectionVersion: connection.statusVersion,
      publicSiteKey,
      origin,
      conversationId: core.plannedIds('cnv', ...operation),
      visitorId: await browserIdOn(core, connectionId, clientInstanceId),
      clientInstanceId,
      network,
      locale: repairLocale(request.locale ?? ''),
      pageContext,
      pageContextAt: pageContext && dateOf(core),
    },
    core.now(),
    core.config,
  )
  const conversation = newConversation(session, core.now())
  const inserted = await Promise.all([insertConversation(core, conversation), sessionStoreOf(core).insertOnce(session)])
  // Checked only now, because a ban that is set during the inserts may not find the session.
  const bans = await Promise.all([isBrowserBanned(core, session), isNetworkBanned(core, network)])
  if (bans.includes(true)) {
    await sessionStoreOf(core).end(session.sessionId, 'banned')
    throw new ServiceError('VisitorBanned')
  }
  if (consent) await inheritConsent(core, session)
  if (request.pageContext && !pageContext)
    await keepPage(core, session.sessionId, installation, request.pageContext, session.createdAt)
  if (inserted.includes(false)) {
    const first = await findSession(core, session.sessionId)
    return sessionContentsOf(core).issue(first, grantOf(first), { state: 'new' })
  }
  const replay = {
    state: 'ready' as const,
    epoch: epochIn(core.history, conversation.epoch),
    lastSequence: 0,
    oldestSequence: 0,
  }
  return sessionContentsOf(core).issue(session, grantOf(session), { state: 'new', replay })
}

async function closeOnce(core: Core, sessionId: string, scope: 'panel' | 'continuity', operation: string) {
  const isDone = async () => (await findSession(core, sessionId)).closedBy === operation
  if (await isDone()) await wakeupsOf(core).stateChanged(sessionId)
  else {
    const { identity } = await visitorAccessOf(core).live(sessionId)
    if (scope === 'panel') {
      await closePanel(core, sessionId)
      return { sessionId, state: 'active' as const }
    }
    // Before the end of the session. Otherwise a new session of the verified visitor could continue the
    // conversation after this one is closed.
    if (identity) await core.db.subjects.deleteOne({ _id: identity.subjectId })
    const isClosed = await wakeupsOf(core).changing([sessionId], () =>
      sessionStoreOf(core).end(sessionId, 'closed', operation),
    )
    if (!isClosed && !(await isDone())) await visitorAccessOf(core).rejectEnded(sessionId)
  }
  return { sessionId, state: 'closed' as const }
}

/**
 * Issues a new grant for a live session. The grant of the request may have expired (contract,
 * section 2). Errors: `GrantInvalid` if the token is invalid or belongs to another session;
 * `ValidationFailed`; those of `VisitorAccess.authorize` (except `GrantExpired`) and of
 * `Idempotency.once`.
 */
export async function renewSession(
  core: Core,
  renewal: VisitorOperation & Omit<ProtoFields<RenewSessionRequest>, 'credentials'>,
): Promise<Repeatable<SessionContent>> {
  const { credentials, sessionId, renewalToken, lastSeenEventId, clientAddress, idempotencyKey } = renewal
  const { session: known } = await visitorAccessOf(core).authorize(credentials, { expiredToo: true })
  if (known.sessionId !== sessionId) throw new ServiceError('GrantInvalid')
  validate(field('/renewalToken', renewalToken, text(1, 256)), field('/lastSeenEventId', lastSeenEventId, text(1, 256)))
  const contents = sessionContentsOf(core)
  const input = { sessionId, renewalToken, lastSeenEventId }
  const { content: issued, replayed } = await oncePerSession(
    core,
    'POST /sessions/renew',
    known,
    idempotencyKey,
    input,
    async (operation): Promise<Issued> => {
      await followAddress(core, known, clientAddress)
      const { session, grant } = await rotate(core, sessionId, renewalToken, operation)
      const replay = await contents.replayOf(session.conversationId, lastSeenEventId)
      const isReset = replay.state === 'reset_required' && parseEventId(lastSeenEventId ?? '') !== undefined
      return contents.issue(session, grant, { state: isReset ? 'reset' : 'continued', replay })
    },
  )
  directoryOf(core).sessions.invalidate(sessionId)
  return { content: await contents.contentOf(issued), replayed }
}

/**
 * Rotates the renewal token. A renewal with the previous token returns the current token, so that all
 * tabs of a duplicated session get the same one. The previous token stays valid until its grant expires.
 * If its grant has expired already, the token stays valid until the new grant expires. This covers a lost
 * response and duplicated tabs that slept too. If the process of an operation died after the rotation, a
 * repeat of the operation may use the previous token at any time.
 */
async function rotate(
  core: Core,
  sessionId: string,
  renewalToken: string,
  operation: string,
): Promise<{ session: Session; grant: GrantTimes & { generation: number } }> {
  const session = await visitorAccessOf(core).live(sessionId)
  const { generation, previousUntil, operation: rotatedBy } = session.renewal
  const times = grantTimes(core.now(), core.config, session.endsAt)
  const ends = storedTimes(times)
  const isLatest = grantsOf(core).isRenewalToken(renewalToken, sessionId, generation)
  if (!isLatest) {
    const isPrevious = generation > 0 && grantsOf(core).isRenewalToken(renewalToken, sessionId, generation - 1)
    const isValid = isPrevious && (previousUntil.getTime() > core.now() || rotatedBy === operation)
    if (!isValid) throw new ServiceError('GrantInvalid')
  }
  const next = isLatest ? generation + 1 : generation
  const isExpired = session.grantExpiresAt.getTime() <= core.now()
  const rotated = {
    generation: next,
    previousUntil: isExpired ? ends.grantExpiresAt : session.grantExpiresAt,
    operation,
  }
  const isUnchanged = { 'renewal.generation': generation }
  const isRepeat = { 'renewal.generation': next, 'renewal.operation': operation }
  const isWritten = await sessionStoreOf(core).update({
    filter: { _id: sessionId, status: 'active', $or: isLatest ? [isUnchanged, isRepeat] : [isUnchanged] },
    update: { $max: ends, ...(isLatest && { $set: { renewal: rotated } }) },
  })
  // Another renewal came first.
  if (!isWritten) return rotate(core, sessionId, renewalToken, operation)
  return { session, grant: { ...times, generation: next } }
}
