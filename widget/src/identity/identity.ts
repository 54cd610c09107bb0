import type { Clock } from '../../../browser/platform.ts'
import type { OutboxEntry } from '../messages/outbox.ts'
import type { GivenSession } from '../session/session.ts'
import { payloadOf } from '../session/session-record.ts'
import type { ClosedVisit, Visit } from '../session/visit.ts'
import type { Api } from '../transport/api.ts'
import { toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { IdentityProvider, SessionView, VisitorIdentity, VisitorReset } from '../vocabulary/types.ts'
import { createDeparture, type DepartureDeps } from './departure.ts'
import { createIdentityApi } from './identity-api.ts'

interface IdentityDeps extends DepartureDeps {
  api: Pick<Api, 'call' | 'post' | 'renewSession'>
  provider?: IdentityProvider
  current(): Visit | undefined
  /** Called when the same conversation continues in another session. */
  onSessionChange(sessionId: string): void
}

const providerTimeoutMs = 15_000
/** Longest time in milliseconds for which a logout waits for the service. */
const longestLogoutMs = 2_000

/**
 * Identifies the visitor with assertions of the host's backend and logs the visitor out (sections
 * 2.4, 3.2 and 4.4 of the specification). An anonymous visitor who is identified keeps the
 * conversation. Another person gets a new session. Changes of the identity run one at a time.
 */
export function createIdentity(deps: IdentityDeps) {
  const { provider, records, emit } = deps
  const api = createIdentityApi(deps.api, deps.platform)
  const { end, replace, hideMessages, remember, closeLeft } = createDeparture(deps, api)
  let turns: Promise<unknown> = Promise.resolve()

  return {
    closeLeft,

    /** Resolves to true if the visit continues, and to false if another visit has replaced it. */
    async onStart(visit: Visit): Promise<boolean> {
      try {
        const assertion = await api.repeat(() => assertionFor())
        const goesOn = assertion
          ? await identifyAs(visit, assertion, { isAtStart: true }).catch(ifNotAdvertised)
          : undefined
        if (goesOn !== undefined) return goesOn
        if (!visit.session.isVerified()) return true
        await replace(visit.session.content()!, api.clearIdentity, { isAtStart: true })
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
      const assertion = await api.repeat(() => assertionFor()).catch(() => undefined)
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

    clearIdentity: (): Promise<void> => soon(inTurn((visit) => end(visit), false)),

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

  /** Rejects after `longestLogoutMs`, because a page waits for it before it logs out. The change goes on. */
  function soon(change: Promise<void>) {
    const { clock } = deps.platform
    return new Promise<void>((resolve, reject) => {
      const late = new WidgetError('timeout', { retryable: true })
      const timer = clock.setTimeout(() => reject(late), longestLogoutMs)
      change.finally(() => clock.clearTimeout(timer)).then(resolve, reject)
    })
  }

  function assertionFor(wanted?: VisitorIdentity) {
    return requestAssertion(provider, deps.platform.clock, wanted)
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
      const content = await api.identify(assertion, grant, key)
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
        const given = await api.ask(before, call)
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

  function emitError({ detail }: WidgetError) {
    emit('error', detail)
  }
}

/**
 * Asks the host's identity provider for an assertion. Returns undefined if no user is logged in.
 *
 * @throws WidgetError `identity_unavailable` if the provider fails or does not answer in time;
 * `identity_mismatch` if the assertion has another subject than `wanted`
 */
async function requestAssertion(
  provider: IdentityProvider | undefined,
  clock: Clock,
  wanted?: VisitorIdentity,
): Promise<string | undefined> {
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
  // Only the service verifies the assertion. This rejects one that the caller does not expect.
  if (assertion && subject !== undefined && claimsOf(assertion)?.sub !== subject)
    throw new WidgetError('identity_mismatch')
  return assertion
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
