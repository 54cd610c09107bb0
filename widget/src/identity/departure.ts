import { isReturn, type Platform } from '../../../browser/platform.ts'
import type { GivenSession } from '../session/session.ts'
import type { SessionNotes, SessionRecord, SessionRecords } from '../session/session-record.ts'
import type { Visit } from '../session/visit.ts'
import { sessionEndOf, toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type { ConnectionState, LeftSession, SessionContent } from '../vocabulary/types.ts'
import type { IdentityApi } from './identity-api.ts'

type Call = (grant: string, key: string) => Promise<SessionContent | undefined>

export interface DepartureDeps {
  records: SessionRecords
  emit: Emitter['emit']
  started(): Promise<void> | undefined
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  /** Returns the visit whose messages are on screen. This visit may have ended. */
  shown(): Visit | undefined
  /** Closes the visit. If a reason is given, reports the visit's unsent messages as failed. */
  drop(reason?: WidgetError): void
  /**
   * Starts another visit with the given session, or with a new session. If `asks` is true, calls
   * the identity provider first.
   */
  begin(asks: boolean, given?: GivenSession): Promise<void>
  onConnection(state: ConnectionState): void
  /**
   * Called when the identity cannot be determined. The chat ends, because it must not continue as
   * an anonymous visitor.
   */
  onUnidentified(code: string): void
}

interface Replacement {
  asks?: boolean
  draft?: string
  /**
   * True if the page has just been loaded. If the stored session has ended, the end is reported and
   * no new session starts.
   */
  isAtStart?: boolean
  subject?: string
}

/**
 * Removes the data of a visitor from the page and from its storage, when the visitor logs out, is
 * reset or is another person.
 */
export function createDeparture(deps: DepartureDeps, api: Pick<IdentityApi, 'ask' | 'clearIdentity' | 'closeSession'>) {
  const { records, emit } = deps
  const leaving = new Set<LeftSession>()
  deps.platform.lifecycle.subscribe((signal) => {
    if (signal === 'pagehide') storeLeft(...leaving)
    else if (isReturn(signal) && deps.started()) closeLeft()
  })

  return { end, replace, hideMessages, remember, closeLeft }

  /**
   * Ends the session of this page, or the session that an earlier page has stored. If `asks` is
   * true, the next visit calls the identity provider.
   */
  function end(visit: Visit | undefined, { asks, draft }: Pick<Replacement, 'asks' | 'draft'> = {}) {
    const before = visit ? visit.session.content() : records.read()?.session
    if (before?.identity?.state !== 'verified') return replace(before, api.closeSession, { asks, draft })
    return replace(before, asks ? api.closeSession : api.clearIdentity, { asks })
  }

  /**
   * Removes the previous visitor's data from the page and its storage. Then makes the call with the
   * previous session and, if the client is started, starts a visit with the session of the answer or
   * with a new session.
   */
  async function replace(
    before: SessionContent | undefined,
    call: Call,
    { asks = false, draft, isAtStart, subject }: Replacement,
  ): Promise<void> {
    const run = deps.started()
    const isCurrent = () => run && deps.started() === run
    leave({ draft })
    let given: GivenSession | undefined
    try {
      const answer = before?.accessGrant ? await leaveWith(before, call) : undefined
      if (answer?.content) given = { ...answer, subject } as GivenSession
    } catch (error) {
      const failure = toWidgetError(error)
      const event = sessionEndOf(failure.code)
      if (!event) closeLeft(before!)
      if (call === api.closeSession) emit('error', failure.detail)
      // If the session has already ended, the visitor is logged out.
      else if (!event || isAtStart) {
        // Also the next page begins no session by itself.
        leave({ ended: { event: event ?? 'session.closed' } })
        if (isCurrent()) deps.onUnidentified(failure.code)
        throw failure
      }
    }
    if (isCurrent()) await deps.begin(asks && !given, given)
  }

  function storeLeft(...more: LeftSession[]) {
    if (more[0]) records.writeLeft([...records.readLeft(), ...more])
  }

  /**
   * Closes sessions that the service has not ended, also those that earlier attempts could not close. If
   * that fails, stores what a later attempt needs. A page that is left meanwhile stores it too.
   */
  function closeLeft(...more: LeftSession[]) {
    const stored = records.readLeft()
    if (stored[0]) records.writeLeft([])
    for (const each of [...stored, ...more])
      leaveWith(each, api.closeSession).catch((error: WidgetError) => error.retryable && storeLeft(each))
  }

  async function leaveWith(left: LeftSession, call: Call) {
    leaving.add(left)
    try {
      return await api.ask(left, call)
    } finally {
      leaving.delete(left)
    }
  }

  /** Ends the visit and removes the visitor's data from the page and its storage. */
  function leave(kept: Pick<SessionRecord, 'draft' | 'ended'>) {
    const { clientInstanceId } = records.read() ?? {}
    deps.drop(new WidgetError('session.closed', { terminal: true }))
    if (clientInstanceId) records.forget({ clientInstanceId, ...kept })
    if (deps.started()) deps.onConnection('connecting')
    emit('messages.changed', { messages: [] })
    emit('unread.changed', { count: 0 })
  }

  /** Hides the messages and drops those that have failed. */
  function hideMessages(visit: Visit | undefined) {
    const shown = visit ?? deps.shown()
    const { position, hiddenTo, session } = records.read() ?? {}
    const known = [hiddenTo, position?.sequence, session?.replay?.lastSequence, shown?.conversation.lastSequence()]
    remember(visit, { hiddenTo: Math.max(...known.map((sequence) => sequence ?? 0)) })
    shown?.outbox.dropFailed()
    shown?.conversation.clear()
    if (visit) return
    const { sessionId = '', entries } = records.readOutbox()
    records.writeOutbox(sessionId, session ? entries.filter(({ error }) => !error) : [])
  }

  function remember(visit: Visit | undefined, notes: SessionNotes) {
    const stored = records.read()
    if (visit) visit.session.remember(notes)
    else if (stored) records.write({ ...stored, ...notes })
  }
}
