import type { Api } from './api.ts'
import { isRestartableEnd, toWidgetError, WidgetError } from './errors.ts'
import type { Emitter } from './events.ts'
import { createIdentityApi, renewingCall } from './identity-api.ts'
import { ifNotAdvertised, requestAssertion } from './identity-assertion.ts'
import type { OutboxEntry } from './outbox.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import { retrying } from './retrying.ts'
import type { GivenSession } from './session.ts'
import type { SessionRecords } from './session-record.ts'
import type {
  ConnectionState,
  IdentityProvider,
  SessionContent,
  SessionView,
  VisitorIdentity,
  VisitorReset,
} from './types.ts'
import type { ClosedVisit, Visit } from './visit.ts'

const attempts = 4
/**
 * Minimum time for which an operation is retried while the service answers `OperationInProgress`.
 * If the service process that ran the operation has died, a retry succeeds after 15 s.
 */
const deadProcessMs = 20_000

interface IdentityDeps {
  api: Pick<Api, 'call' | 'post' | 'renewSession'>
  platform: Pick<Platform, 'clock' | 'random' | 'newId'>
  records: SessionRecords
  emit: Emitter['emit']
  provider?: IdentityProvider
  /** Returns the active visit, or undefined if no visit is active. */
  current(): Visit | undefined
  started(): Promise<void> | undefined
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
  /** Called when the same conversation continues in another session. */
  onSessionChange(sessionId: string): void
  /**
   * Called when the identity cannot be determined. The chat ends, because it must not continue as
   * an anonymous visitor.
   */
  onUnidentified(code: string): void
}

export type Identity = ReturnType<typeof createIdentity>

/**
 * Identifies the visitor with assertions of the host's backend and logs the visitor out (sections
 * 2.4, 3.2 and 4.4 of the specification). An anonymous visitor who is identified keeps the
 * conversation. Another person gets a new session. Changes of the identity run one at a time.
 */
export function createIdentity(deps: IdentityDeps) {
  const { provider, records, emit } = deps
  const api = createIdentityApi(deps.api)
  const { clock, random, newId } = deps.platform
  let turns: Promise<unknown> = Promise.resolve()

  return {
    /**
     * Identifies the visitor when a visit starts. Resolves to true if the visit continues, and to
     * false if another visit has replaced it.
     */
    async onStart(visit: Visit): Promise<boolean> {
      try {
        const assertion = await repeat(() => assertionFor())
        const goesOn = assertion ? await exchange(visit, identification(assertion)).catch(ifNotAdvertised) : undefined
        if (goesOn !== undefined) return goesOn
        return !visit.session.isVerified() || (await exchange(visit, api.clearIdentity))
      } catch (error) {
        const failure = toWidgetError(error)
        if (deps.current() === visit) emitError(failure)
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
      const clientInstanceId = records.read()?.clientInstanceId ?? newId()
      deps.drop()
      records.write({ clientInstanceId, draft })
      await deps.begin(true)
      const visit = deps.current()
      if (visit?.view()?.identity.state === 'verified') await resend(visit, unsent)
    },

    identify: (wanted?: VisitorIdentity): Promise<SessionView | undefined> =>
      inTurn(async (visit) => {
        if (!visit) throw new WidgetError('session_ended', { terminal: true })
        const assertion = await assertionFor(wanted)
        if (!assertion) throw new WidgetError('identity_unavailable')
        await exchange(visit, identification(assertion), wanted?.displayName)
        return deps.current()?.view()
      }),

    clearIdentity: (): Promise<void> => inTurn((visit) => clear(visit)),

    resetVisitor: (what: VisitorReset = {}): Promise<void> =>
      inTurn(async (visit) => {
        const draft = what.clearDraft || what.clearIdentity ? '' : visit?.draft()
        if (!visit || (what.clearIdentity && visit.session.isVerified())) await clear(visit)
        else if (what.closeSession) await close(visit, !what.clearIdentity)
        else if (what.clearHistory) clearHistory(visit)
        deps.current()?.session.remember({ draft })
      }),
  }

  function inTurn<Result>(change: (visit: Visit | undefined) => Promise<Result>): Promise<Result> {
    const turn = turns.then(async () => {
      await deps.started()
      return change(deps.current())
    })
    turns = turn.catch((error) => emitError(toWidgetError(error)))
    return turn
  }

  function assertionFor(wanted?: VisitorIdentity) {
    return requestAssertion(provider, clock, wanted)
  }

  function identification(assertion: string) {
    return (grant: string, key: string) => api.identify(assertion, grant, key)
  }

  /**
   * Replaces the visit's session with the session that `call` returns. Resolves to true if the
   * visit continues in the new session. If the new session belongs to another person, starts
   * another visit and resolves to false.
   */
  async function exchange(
    visit: Visit,
    call: (grant: string, key: string) => Promise<SessionContent>,
    displayName?: string,
  ): Promise<boolean> {
    const before = visit.session.content()
    if (!before) throw new WidgetError('session_ended', { terminal: true })
    hold(visit)
    try {
      const given = await ask(before, call)
      const { identity } = given.content
      given.content.identity = { ...identity, displayName: identity.displayName ?? displayName }
      if (deps.current() !== visit) throw new WidgetError('session_ended', { terminal: true })
      const goesOn = given.content.sessionId === before.sessionId || before.identity.state === 'anonymous'
      if (goesOn) continueIn(visit, given)
      else {
        leave()
        await deps.begin(false, given)
      }
      return goesOn
    } finally {
      resume(visit)
    }
  }

  /**
   * Continues the visit in another session of the same visitor. The draft and the unsent messages
   * are kept.
   */
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

  /**
   * Sends the unsent messages of an earlier session again. Omits messages that the history already
   * contains.
   */
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
   * Stops sending messages while the identity changes. If the session ends meanwhile, its end is
   * handled after the change.
   */
  function hold({ session, outbox }: Visit) {
    session.hold()
    outbox.stop()
  }

  function resume({ session, outbox, isOpened }: Visit) {
    if (isOpened()) outbox.start()
    session.release()
  }

  function clearHistory({ session, outbox, conversation }: Visit) {
    session.remember({ hiddenTo: Math.max(conversation.lastSequence(), session.notes().position?.sequence ?? 0) })
    outbox.dropFailed()
    conversation.clear()
  }

  async function clear(visit: Visit | undefined): Promise<void> {
    if (!visit) return forget()
    if (!visit.session.isVerified()) return void (await exchange(visit, api.clearIdentity))
    const before = visit.session.content()!
    leave()
    try {
      await deps.begin(false, await ask(before, api.clearIdentity))
    } catch (error) {
      const failure = toWidgetError(error)
      // The session has already ended, so the visitor is logged out.
      if (isRestartableEnd(failure.code)) return deps.begin(false)
      deps.onUnidentified(failure.code)
      throw failure
    }
  }

  async function close(visit: Visit, asks: boolean): Promise<void> {
    const before = visit.session.content()!
    leave()
    await ask(before, api.closeSession).catch((error) => emitError(toWidgetError(error)))
    await deps.begin(asks)
  }

  /**
   * Runs one operation with the grant of the given session. Retries it with the same idempotency
   * key. If the grant has expired, renews it first.
   */
  async function ask<Content>(before: SessionContent, call: (grant: string, key: string) => Promise<Content>) {
    const key = newId()
    const askedAtMs = clock.now()
    return { content: await repeat(renewingCall(deps.api, before, key, call)), askedAtMs }
  }

  /** Ends the visit and deletes the stored session. */
  function leave() {
    const instance = records.read()?.clientInstanceId ?? newId()
    deps.drop(new WidgetError('session.closed', { terminal: true }))
    records.forgetSession(instance)
    deps.onConnection('connecting')
    emit('messages.changed', { messages: [] })
    emit('unread.changed', { count: 0 })
  }

  /**
   * Removes the messages of the ended visit from the screen. Deletes the session that an earlier
   * page stored.
   */
  function forget() {
    const shown = deps.shown()
    if (shown) clearHistory(shown)
    const stored = records.read()
    if (stored?.session) records.forgetSession(stored.clientInstanceId)
  }

  function emitError({ detail }: WidgetError) {
    emit('error', detail)
  }

  function repeat<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    const waitsUntilMs = clock.now() + deadProcessMs
    return retrying(call, {
      pause: createPause(clock),
      random,
      isEnough: ({ code }, attempt) =>
        attempt + 1 >= attempts && (code !== 'OperationInProgress' || clock.now() > waitsUntilMs),
    })
  }
}
