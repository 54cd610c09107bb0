import { createPause } from '../../../browser/pause.ts'
import { isReturn, type Platform } from '../../../browser/platform.ts'
import type { OutboxEntry } from '../messages/outbox.ts'
import type { GivenSession } from '../session/session.ts'
import { payloadOf, type SessionNotes, type SessionRecord, type SessionRecords } from '../session/session-record.ts'
import type { ClosedVisit, Visit } from '../session/visit.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import { sessionEndOf, toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type {
  ConnectionState,
  IdentityProvider,
  LeftSession,
  SessionContent,
  SessionView,
  VisitorIdentity,
  VisitorReset,
} from '../vocabulary/types.ts'

interface IdentityDeps {
  api: Pick<Api, 'call' | 'post' | 'renewSession'>
  provider?: IdentityProvider
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
  current(): Visit | undefined
  /** Called when the same conversation continues in another session. */
  onSessionChange(sessionId: string): void
}

/** Makes a call with the grant of a session, and with an idempotency key. */
type Call<Content> = (grant: string, key: string) => Promise<Content>

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

const attempts = 4
/**
 * While the service answers `OperationInProgress`, retries go on: after 15 s they succeed if its
 * process has died.
 */
const deadProcessMs = 20_000
const providerTimeoutMs = 15_000
/** Longest time in milliseconds for which a logout waits for the service. */
const longestLogoutMs = 2_000

/**
 * Identifies the visitor with assertions of the host's backend and logs the visitor out (sections
 * 2.4, 3.2 and 4.4 of the specification). An anonymous visitor who is identified keeps the
 * conversation. Another person gets a new session. Changes of the identity run one at a time.
 */
export function createIdentity(deps: IdentityDeps) {
  const { api, provider, records, emit } = deps
  const { clock, random, newId, lifecycle } = deps.platform
  const leaving = new Set<LeftSession>()
  let turns: Promise<unknown> = Promise.resolve()
  lifecycle.subscribe((signal) => {
    if (signal === 'pagehide') storeLeft(...leaving)
    else if (isReturn(signal) && deps.started()) closeLeft()
  })

  return {
    closeLeft,

    /** Resolves to true if the visit continues, and to false if another visit has replaced it. */
    async onStart(visit: Visit): Promise<boolean> {
      try {
        const assertion = await repeat(() => assertionFor())
        const goesOn = assertion
          ? await identifyAs(visit, assertion, { isAtStart: true }).catch(ifNotAdvertised)
          : undefined
        if (goesOn !== undefined) return goesOn
        if (!visit.session.isVerified()) return true
        await replace(visit.session.content()!, endIdentity, { isAtStart: true })
        return false
      } catch (error) {
        const failure = toWidgetError(error)
        if (deps.started()) emitError(failure)
        throw failure
      }
    },

    /**
     * Called when an anonymous session was closed. If the provider now returns an assertion, the
     * chat continues in a new session of the assertion's subject. Otherwise, the visit ends.
     */
    async followClosed(closed: Visit, { unsent, draft, end }: ClosedVisit): Promise<void> {
      const assertion = await repeat(() => assertionFor()).catch(() => undefined)
      if (deps.shown() !== closed) return
      if (!assertion) return end()
      const { clientInstanceId } = records.read()!
      deps.drop()
      records.write({ clientInstanceId, draft })
      await deps.begin(true)
      const visit = deps.current()
      if (visit?.view()?.identity.state === 'verified') await resend(visit, unsent)
    },

    identify: (wanted?: VisitorIdentity): Promise<SessionView | undefined> =>
      inTurn(async (visit) => {
        if (!deps.started()) throw new WidgetError('not_started')
        if (!visit) throw new WidgetError('session_ended', { terminal: true })
        const assertion = await assertionFor(wanted)
        if (!assertion) throw new WidgetError('identity_unavailable')
        await identifyAs(visit, assertion, wanted)
        return deps.current()?.view()
      }),

    /** Rejects after `longestLogoutMs`, because a page waits for it before it logs out. The change goes on. */
    clearIdentity: (): Promise<void> =>
      within(
        longestLogoutMs,
        new WidgetError('timeout', { retryable: true }),
        inTurn((visit) => end(visit), false),
      ),

    resetVisitor: (what: VisitorReset = { clearIdentity: true }): Promise<void> =>
      inTurn(async (visit) => {
        const { clearIdentity, closeSession, clearHistory, clearDraft } = what
        if (clearIdentity) return end(visit)
        if (closeSession) return end(visit, { asks: true, draft: clearDraft ? '' : records.read()?.draft })
        if (clearHistory) hideMessages(visit)
        if (clearDraft) remember(visit, { draft: '' })
      }, false),
  }

  /** `needsSession` is false if the change need not wait for a session that is being created. */
  function inTurn<Result>(change: (visit: Visit | undefined) => Promise<Result>, needsSession = true): Promise<Result> {
    const turn = turns.then(async () => {
      const visit = deps.current()
      if (needsSession || !visit || visit.session.content()) await deps.started()
      return change(deps.current())
    })
    turns = turn.catch((error) => emitError(toWidgetError(error)))
    return turn
  }

  /**
   * Asks the host's identity provider for an assertion. Returns undefined if no user is logged in.
   *
   * @throws WidgetError `identity_unavailable` if the provider fails or does not answer in time;
   * `identity_mismatch` if the assertion has another subject than `wanted`
   */
  async function assertionFor(wanted?: VisitorIdentity): Promise<string | undefined> {
    const unavailable = new WidgetError('identity_unavailable', { retryable: true })
    let assertion: string | undefined
    try {
      assertion = await within(providerTimeoutMs, unavailable, Promise.resolve(provider?.(wanted)))
    } catch {
      throw unavailable
    }
    const subject = wanted?.externalSubject
    // Only the service verifies the assertion. This rejects one that the caller does not expect.
    if (assertion && subject !== undefined && claimsOf(assertion)?.sub !== subject)
      throw new WidgetError('identity_mismatch')
    return assertion
  }

  /** Returns the result of a promise. If that takes longer than `ms`, rejects with `late`. */
  function within<Result>(ms: number, late: WidgetError, result: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const timer = clock.setTimeout(() => reject(late), ms)
      result.finally(() => clock.clearTimeout(timer)).then(resolve, reject)
    })
  }

  /** Resolves to false if the assertion has another subject, so that another visit has started. */
  async function identifyAs(
    visit: Visit,
    assertion: string,
    { displayName, isAtStart }: { displayName?: string; isAtStart?: boolean } = {},
  ): Promise<boolean> {
    const { session, outbox } = visit
    const before = session.content()
    if (!before) throw new WidgetError('session_ended', { terminal: true })
    const subject = claimsOf(assertion)?.sub as string | undefined
    async function call(grant: string, key: string) {
      const content = await sendAssertion(assertion, grant, key)
      content.identity.displayName ??= displayName
      return content
    }
    if (session.isVerified() && subject && subject !== session.notes().subject) {
      await replace(before, call, { asks: true, isAtStart, subject })
      return false
    }
    return session.whileChanging(async () => {
      // Messages are not sent meanwhile.
      outbox.stop()
      try {
        const given = await ask(before, call)
        if (deps.current() !== visit) throw new WidgetError('session_ended', { terminal: true })
        continueIn(visit, { ...given, subject })
        return true
      } finally {
        if (visit.isOpened()) outbox.start()
      }
    })
  }

  /** Continues in another session of the same visitor, with the draft and the unsent messages. */
  function continueIn(visit: Visit, given: GivenSession) {
    const { session, outbox, conversation } = visit
    const before = session.content()!
    const { sessionId, conversationId, replay } = given.content
    const unsent = visit.isOpened() ? outbox.pending() : records.readOutbox().entries
    const isSameSession = sessionId === before.sessionId
    const isSameConversation = conversationId === before.conversationId
    session.accept(given)
    if (!isSameSession) {
      records.writeOutbox(sessionId, unsent)
      if (isSameConversation) deps.onSessionChange(sessionId)
    }
    if (!visit.isOpened()) return
    emit('session.ready', { session: visit.view()! })
    if (isSameSession) return
    visit.startStream()
    if (isSameConversation) return
    conversation.setReadTo(replay.lastSequence)
    void visit.loadHistory()
  }

  /** Sends unsent messages of an earlier session again, except for those that the history contains. */
  async function resend(visit: Visit, unsent: readonly OutboxEntry[]) {
    const { outbox, conversation } = visit
    if (unsent.length === 0) return
    outbox.stop()
    records.writeOutbox(visit.view()!.sessionId, unsent)
    for (const entry of unsent) conversation.addOwn(entry)
    await visit.loaded()
    const { byOperation } = conversation.messages
    outbox.restore(unsent.filter(({ input }) => !byOperation(input.clientOperationId)?.messageId))
    outbox.start()
  }

  /**
   * Ends the session of this page, or the session that an earlier page has stored. If `asks` is
   * true, the next visit calls the identity provider.
   */
  function end(visit: Visit | undefined, { asks, draft }: Pick<Replacement, 'asks' | 'draft'> = {}) {
    const before = visit ? visit.session.content() : records.read()?.session
    if (before?.identity?.state !== 'verified') return replace(before, endSession, { asks, draft })
    return replace(before, asks ? endSession : endIdentity, { asks })
  }

  /**
   * Removes the previous visitor's data from the page and its storage. Then makes the call with the
   * previous session and, if the client is started, starts a visit with the session of the answer or
   * with a new session.
   */
  async function replace(
    before: SessionContent | undefined,
    call: Call<SessionContent | undefined>,
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
      if (call === endSession) emit('error', failure.detail)
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
      leaveWith(each, endSession).catch((error: WidgetError) => error.retryable && storeLeft(each))
  }

  async function leaveWith(left: LeftSession, call: Call<SessionContent | undefined>) {
    leaving.add(left)
    try {
      return await ask(left, call)
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

  function sendAssertion(assertion: string, grant: string, key: string) {
    return api.post<SessionContent>('/sessions/identify', 'accessGrant', { assertion }, key, grant)
  }

  function endIdentity(grant: string, idempotencyKey: string) {
    const parts = { method: 'DELETE', path: '/sessions/identify', field: 'accessGrant' } as const
    return api.call<SessionContent>({ ...parts, grant, idempotencyKey })
  }

  async function endSession(grant: string, key: string): Promise<undefined> {
    await api.post('/sessions/close', 'state', { scope: 'continuity' }, key, grant)
  }

  /**
   * Runs one operation with the grant of the given session. Retries it with the same idempotency
   * key. If the grant has expired, renews it first. If the answer has no renewal token, the
   * session continues with the one that it has.
   */
  async function ask<Content>(before: LeftSession, operation: Call<Content>) {
    const key = newId()
    const askedAtMs = clock.now()
    let { accessGrant, renewalToken } = before
    const attempt = () => operation(accessGrant, key)
    async function renewFirst(error: WidgetError): Promise<Content> {
      if (error.code !== 'GrantExpired') throw error
      ;({ accessGrant, renewalToken } = await api.renewSession(before, key))
      return attempt()
    }
    const answer = await repeat(() => attempt().catch(renewFirst))
    return { content: answer && { renewalToken, ...answer }, askedAtMs }
  }

  function repeat<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
    const waitsUntilMs = clock.now() + deadProcessMs
    return retrying(attempt, {
      pause: createPause(clock),
      random,
      isEnough: ({ code }, count) =>
        count + 1 >= attempts && (code !== 'OperationInProgress' || clock.now() > waitsUntilMs),
    })
  }

  function emitError({ detail }: WidgetError) {
    emit('error', detail)
  }
}

/** Ignores that identification was turned off after the configuration was loaded. */
function ifNotAdvertised(error: unknown): undefined {
  if (toWidgetError(error).code !== 'RouteNotAdvertised') throw error
}

/** Returns the claims of a JWS without verifying them, or undefined if the JWS cannot be parsed. */
function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(payloadOf(token), (character) => character.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}
