import type { Api } from './api.ts'
import { claimsOf } from './claims.ts'
import { isOneSessionsEnd, toWidgetError, WidgetError } from './errors.ts'
import type { Emitter } from './events.ts'
import { createIdentityApi } from './identity-api.ts'
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
  WidgetEventMap,
} from './types.ts'
import type { ClosedVisit, Visit } from './visit.ts'

const attempts = 4
/** After 15 s, the service treats a silent process as dead and lets a retry complete its operation. */
const deadProcessMs = 20_000
const providerTimeoutMs = 15_000

export interface IdentityDeps {
  api: Pick<Api, 'call'>
  platform: Pick<Platform, 'clock' | 'random' | 'newId'>
  records: SessionRecords
  emit: Emitter<WidgetEventMap>['emit']
  provider?: IdentityProvider
  /** The active visit. Undefined if there is none or it has ended. */
  current(): Visit | undefined
  started(): Promise<void> | undefined
  /** The visit on screen, which may have ended. */
  shown(): Visit | undefined
  /** Ends the visit. Given a reason, its unsent messages are reported as failed. */
  drop(reason?: WidgetError): void
  /** Begins another visit; creates a session if none is given. `asks`: the provider decides who the visitor is. */
  begin(asks: boolean, given?: GivenSession): Promise<void>
  onConnection(state: ConnectionState): void
  /** The conversation continues in another session. */
  onSessionChange(sessionId: string): void
  /** The visitor's identity is unknown. The chat ends, since it must not continue as anonymous. */
  onUnidentified(code: string): void
}

export type Identity = ReturnType<typeof createIdentity>

/**
 * Who the visitor is (sections 2.4, 3.2 and 4.4 of the specification). The host's backend decides by its assertion. An anonymous
 * visitor who is identified continues in the session of the answer. Another person gets a new session. One change at a
 * time.
 */
export function createIdentity(deps: IdentityDeps) {
  const { provider, records, emit } = deps
  const api = createIdentityApi(deps.api)
  const { clock, random, newId } = deps.platform
  let turns: Promise<unknown> = Promise.resolve()

  return {
    /** Identifies the visitor at the start. Resolves to false if another visit replaces this one; rejects on failure. */
    async settle(visit: Visit): Promise<boolean> {
      try {
        const assertion = await repeat(() => assertionFor())
        if (assertion) return await exchange(visit, identification(assertion))
        return !visit.session.isVerified() || (await exchange(visit, api.clearIdentity))
      } catch (error) {
        const failure = toWidgetError(error)
        if (deps.current() === visit) tell(failure)
        throw failure
      }
    },

    /** An anonymous session was closed. Continues if the host knows the visitor by now, else ends the visit. */
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
    turns = turn.catch((error) => tell(toWidgetError(error)))
    return turn
  }

  async function assertionFor(wanted?: VisitorIdentity): Promise<string | undefined> {
    const unavailable = new WidgetError('identity_unavailable', { retryable: true })
    let assertion: string | undefined
    try {
      assertion = await new Promise<string | undefined>((resolve, reject) => {
        const timer = clock.setTimeout(() => reject(unavailable), providerTimeoutMs)
        const done = () => clock.clearTimeout(timer)
        Promise.resolve(provider?.(wanted)).finally(done).then(resolve, reject)
      })
    } catch {
      throw unavailable
    }
    const subject = wanted?.externalSubject
    // The claims are not verified here. The check only prevents the use of an assertion for another subject.
    if (assertion && subject !== undefined && claimsOf(assertion)?.sub !== subject)
      throw new WidgetError('identity_mismatch')
    return assertion
  }

  function identification(assertion: string) {
    return (grant: string, key: string) => api.identify(assertion, grant, key)
  }

  /** Resolves to true if the visit continues, and to false if a visit of another person has begun. */
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

  /** The same visitor continues in another session: draft and unsent messages stay. */
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

  /** Sends the messages of an earlier session, except those that the history already has. */
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

  /** The identity is changing, so nothing is sent. */
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
      // The session has ended, and its association with the subject.
      if (isOneSessionsEnd(failure.code)) return deps.begin(false)
      deps.onUnidentified(failure.code)
      throw failure
    }
  }

  async function close(visit: Visit, asks: boolean): Promise<void> {
    const before = visit.session.content()!
    leave()
    await ask(before, api.closeSession).catch((error) => tell(toWidgetError(error)))
    await deps.begin(asks)
  }

  /** Runs one operation with one key and the old grant, with retries. */
  async function ask<Content>({ accessGrant }: SessionContent, call: (grant: string, key: string) => Promise<Content>) {
    const key = newId()
    const askedAtMs = clock.now()
    return { content: await repeat(() => call(accessGrant, key)), askedAtMs }
  }

  /** The person leaves: ends the visit and forgets the session. */
  function leave() {
    const instance = records.read()?.clientInstanceId ?? newId()
    deps.drop(new WidgetError('session.closed', { terminal: true }))
    records.forgetSession(instance)
    deps.onConnection('connecting')
    emit('messages.changed', { messages: [] })
    emit('unread.changed', { count: 0 })
  }

  /** Removes what an ended visit or an earlier page has left. */
  function forget() {
    const shown = deps.shown()
    if (shown) clearHistory(shown)
    const stored = records.read()
    if (stored?.session) records.forgetSession(stored.clientInstanceId)
  }

  function tell({ detail }: WidgetError) {
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
