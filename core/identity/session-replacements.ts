import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Bans } from '../bans/bans.ts'
import type { Consents } from '../consents/consents.ts'
import type { Observations } from '../consents/observations.ts'
import { ServiceError } from '../errors.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import type { EventLog } from '../log/event-log.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import {
  type ConversationRecords,
  firstGrantOf,
  type Identity,
  type Issued,
  newConversation,
  type Session,
  type SessionLifetimes,
} from '../sessions/model.ts'
import type { SessionContents } from '../sessions/session-content.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { Installation } from '../workspaces/model.ts'
import { replacementOf } from './replacement-model.ts'
import type { Subjects } from './subjects.ts'

interface SessionReplacementsDeps {
  store: SessionStore
  conversations: Pick<ConversationRecords, 'insertOnce' | 'setLastSession'>
  subjects: Pick<Subjects, 'decideConversation'>
  bans: Pick<Bans, 'isBanned'>
  consents: Pick<Consents, 'inherit'>
  observations: Pick<Observations, 'pageAtStart' | 'keepPage'>
  contents: SessionContents
  access: Pick<VisitorAccess, 'rejectEnded'>
  log: Pick<EventLog, 'append'>
  plannedIds: PlannedIds
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
  settings: SessionLifetimes
  now: () => number
}

export type SessionReplacements = ReturnType<typeof createSessionReplacements>

/** Replaces sessions when their visitor changes: by an identification or a logout. */
export function createSessionReplacements(dependencies: SessionReplacementsDeps) {
  const { store, conversations, subjects, bans, consents, observations } = dependencies
  const { contents, access, log, plannedIds, wakeups, settings, now } = dependencies

  /**
   * Replaces a session with a new one, whose ids are derived from the operation. Of concurrent
   * operations, the one whose write closes the old session succeeds. So no client gets the new
   * credentials before that write.
   */
  async function replace(
    old: Session,
    identity: Identity | undefined,
    operation: string,
    installation: Installation,
  ): Promise<Issued> {
    const planned = {
      sessionId: plannedIds('ses', operation),
      conversationId: plannedIds('cnv', operation),
      identity,
      pageContext: observations.pageAtStart(installation, old.pageContext),
    }
    const session = replacementOf(old, planned, now(), settings)
    if (!session.operationSessionId) await conversations.insertOnce(newConversation(session, now()))
    await store.insertOnce(session)
    await rejectBanned(session)
    const { sessionId } = session
    const joined = old.identity ? undefined : identity
    if (joined) await appendIdentified(old)
    return wakeups.changing([old.sessionId], async () => {
      if (!(await store.replaceBy(old.sessionId, { operation, sessionId }, joined))) {
        const current = await latest(old.sessionId)
        if (current.successor?.operation !== operation) {
          await store.end(sessionId, 'closed')
          await access.rejectEnded(old.sessionId)
        }
      }
      return complete(await latest(old.sessionId), operation, installation)
    })
  }

  /** Completes an operation whose first run died after it had closed the session. */
  async function repeat(old: Session, operation: string, installation: Installation): Promise<Issued> {
    const issued = await complete(old, operation, installation)
    await wakeups.stateChanged(old.sessionId)
    return issued
  }

  /** Completes the operation that closed a session. Returns the content of the new session. */
  async function complete(old: Session, operation: string, installation: Installation): Promise<Issued> {
    if (old.successor?.operation !== operation) throw new ServiceError(ErrorCode.SESSION_CLOSED)
    const session = await subjects.decideConversation(await latest(old.successor.sessionId), old)
    if (session.conversationId === old.conversationId) {
      const { sequence } = await appendIdentified(old)
      await conversations.setLastSession(session.conversationId, { sequence, sessionId: session.sessionId })
    }
    // The replaced anonymous session now belongs to the verified visitor, so its consent decision
    // applies to that visitor. After a logout another person may use the browser, and that person
    // must decide anew.
    if (session.identity) await consents.inherit(session)
    const isJoining = session.operationSessionId !== undefined
    if (isJoining && old.pageContext && old.pageContextAt && !session.pageContext)
      await observations.keepPage(session.sessionId, installation, old.pageContext, old.pageContextAt)
    const isNew = session.conversationId === plannedIds('cnv', operation)
    return contents.issue(session, firstGrantOf(session), { state: isNew ? 'new' : 'continued' })
  }

  /**
   * Announces the identification to the streams of an anonymous session before those streams get
   * the event that ends the session.
   */
  async function appendIdentified({ sessionId, conversationId }: Session): Promise<LogEvent> {
    const type = 'session.identified'
    const operationKey = operationKeys.session(sessionId, type)
    return (await log.append({ conversationId, type, sessionId, operationKey, inputHash: type })).event
  }

  /**
   * Ends the new session if its visitor is banned. A ban that was set between the check and the
   * insert of the session did not end the session.
   */
  async function rejectBanned(session: Session) {
    if (!(await bans.isBanned(session))) return
    await store.end(session.sessionId, 'banned')
    throw new ServiceError(ErrorCode.VISITOR_BANNED)
  }

  /** Reads a session from the store. Error: GrantInvalid if it does not exist. */
  async function latest(sessionId: string): Promise<Session> {
    const [session] = await store.find([sessionId])
    if (!session) throw new ServiceError(ErrorCode.GRANT_INVALID)
    return session
  }

  return { replace, repeat, latest }
}
