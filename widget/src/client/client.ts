import { createPlatform } from '../../../browser/platform.ts'
import { storageFor } from '../../../browser/storage.ts'
import { type ConsentKeeper, createConsent } from '../features/consent.ts'
import { createConsentRecords } from '../features/consent-record.ts'
import { createFeatures } from '../features/features.ts'
import { minimized } from '../features/page-reports.ts'
import { createIdentity } from '../identity/identity.ts'
import { messageBody } from '../messages/outbox.ts'
import type { GivenSession } from '../session/session.ts'
import { createSessionRecords } from '../session/session-record.ts'
import { createVisit, type Visit } from '../session/visit.ts'
import { createApi } from '../transport/api.ts'
import { sessionEndOf, toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import { createEmitter, type Emitter } from '../vocabulary/events.ts'
import type {
  ConnectionState,
  ReplayReset,
  SessionEnd,
  SessionView,
  VisitorIdentity,
  WidgetMessage,
} from '../vocabulary/types.ts'
import type { ServiceClientOptions } from './client-options.ts'
import { createConfiguration } from './configuration.ts'

export type ServiceClient = ReturnType<typeof createServiceClient>

const notStarted = () => Promise.reject(new WidgetError('not_started'))

/** Maximum length of a stored draft, in UTF-16 code units. */
const longestDraft = 16_384

/**
 * The chat client without a user interface: session, messages and events (section 4.4 of the
 * specification). Before `start`, the client sends no request and accesses no storage.
 *
 * @param emitter event emitter that a user interface shares with the client to add its own events
 */
export function createServiceClient(options: ServiceClientOptions, emitter: Emitter = createEmitter()) {
  const { emit } = emitter
  let visit: Visit | undefined
  let starting: Promise<void> | undefined
  const provider = async (wanted?: VisitorIdentity) =>
    config()?.capabilities.identity === false ? undefined : options.identityProvider?.(wanted)
  const pageContext = () =>
    config()?.capabilities.pageContext && consentRecords.mayObserve(config())
      ? minimized(options.pageContext?.())
      : undefined
  const session = (): SessionView | undefined => visit?.view()
  const messages = (): readonly WidgetMessage[] => visit?.conversation.messages.all() ?? []
  const platform = createPlatform(storageFor(options.storage ?? 'session'), options.platform)
  const api = createApi({ ...platform, apiBaseUrl: options.apiBaseUrl })
  const records = createSessionRecords(platform.storage, options.siteKey)
  const consentRecords = createConsentRecords(platform.storage, options.siteKey, session)
  let connection: ConnectionState = 'idle'
  /** Why the chat has ended. The connection then changes only when the chat is reset. */
  let ended: Readonly<{ event?: SessionEnd; code: string }> | undefined
  /** True if the visitor may start another session after the end. */
  let mayStartNew = false
  const canStartNew = () => !!ended && mayStartNew
  const configuration = createConfiguration({
    api,
    platform,
    emitter,
    siteKey: options.siteKey,
    isRunning: () => starting !== undefined && !ended,
  })
  const config = configuration.current
  const shared = {
    api,
    consentRecords,
    platform,
    emitter,
    siteKey: options.siteKey,
    supports: options.supports,
    config,
    refreshConfig: configuration.refresh,
    session,
    messages,
    pageContext,
    aheadMs: () => visit?.session.aheadMs() ?? 0,
    grants: () => visit?.session.withGrant ?? notStarted,
  }
  const consent = createConsent(shared)
  const features = createFeatures({ ...shared, consented: consent.run })
  emitter.on('consent.changed', ({ consent: given }) => given?.status === 'granted' && visit?.resendRefused())
  const identity = createIdentity({
    api,
    platform,
    records,
    emit,
    provider,
    current: () => (ended ? undefined : visit),
    shown: () => visit,
    started: () => starting,
    drop(reason) {
      visit?.close(reason)
      visit = undefined
    },
    begin,
    onConnection: setConnection,
    onSessionChange: features.changeSession,
    onUnidentified: (code) => setEnd(code, true),
  })

  return {
    ...features.operations,

    /**
     * Resumes the tab's session or creates one. If the tab's session has ended, reports its end and
     * creates no session. Identifies the visitor, then loads the history and opens the stream.
     * Resolves when the session exists or the attempt to obtain one has ended.
     * Never rejects: events and `ended()` report failures.
     */
    start,

    /** Closes the connection. A later `start` resumes the session while it can be renewed. */
    stop,

    /** Starts an empty conversation after the session ended. Does nothing if `canStartNew()` is false. */
    async startNew(): Promise<void> {
      if (!canStartNew()) return
      const { clientInstanceId, draft, ended: stored } = records.read() ?? {}
      if (stored) records.write({ clientInstanceId: clientInstanceId!, draft })
      stop()
      await start()
    },

    /** Returns true if the chat has ended and the visitor may start a new session. */
    canStartNew,

    /**
     * Puts a message in the outbox. Events report its delivery.
     *
     * @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or
     * `session_ended`
     */
    sendMessage(text: string): WidgetMessage {
      visit?.session.act()
      if (ended) throw new WidgetError('session_ended', { terminal: true })
      if (!visit) throw new WidgetError('not_started')
      const body = messageBody(text, config()?.limits.bodyMaxLength)
      const { locale } = options
      const message = visit.send({
        input: { clientOperationId: platform.newId(), body, contentType: 'text', locale, pageContext: pageContext() },
        createdAt: new Date(platform.clock.now()).toISOString(),
      })
      emit('message.queued', { message })
      if (!platform.lifecycle.isOnline()) emit('offline.submitted', { message })
      return message
    },

    /**
     * Retries a failed message. Returns false if no failed message has this operation id.
     *
     * @param known `failureVersion` of the failure that the visitor has seen
     * @throws WidgetError `failure_outdated` if the message has failed again since then
     */
    retryMessage: (clientOperationId: string, known?: { failureVersion?: number }): boolean =>
      visit?.retry(clientOperationId, known?.failureVersion) ?? false,

    /** Loads the history page before the oldest loaded message. */
    loadOlder: async (): Promise<void> => visit?.history.loadOlder(),
    hasOlder: (): boolean => visit?.history.hasOlder() ?? false,
    messages,

    /** Returns the number of unread messages from agents and the system. */
    unread: (): number => visit?.conversation.unread() ?? 0,

    /** Stops the answers of bots that grow. */
    stopAnswer: (): void => visit?.stopAnswer(),

    /** Marks the messages up to this sequence as read; all messages if it is missing. */
    markRead: (upToSequence?: number): void => visit?.markRead(upToSequence),

    /** Returns the unsent text of the message field. */
    draft: (): string => visit?.draft() ?? '',

    /** Stores the unsent text with the session. */
    setDraft(text: string) {
      visit?.session.remember({ draft: text.slice(0, longestDraft) })
    },

    /**
     * Gets an assertion from the identity provider and identifies the visitor. If the assertion's
     * subject is not the current visitor, a new session starts. Messages of the previous session
     * are then neither shown nor sent.
     *
     * @param wanted the expected subject; an assertion for another subject is rejected
     * @throws WidgetError `identity_unavailable`, `identity_mismatch` or an error of the service;
     * the session stays unchanged
     */
    identify: identity.identify,

    /**
     * Logs the visitor out and continues with a new anonymous session. Removes the visitor's data
     * from the page at once, even if the request to the service fails.
     *
     * @throws WidgetError if the request fails, and `timeout` after two seconds; the request goes on
     */
    clearIdentity: identity.clearIdentity,

    /**
     * Removes the data that `what` selects, for example on logout or a change of account.
     *
     * @throws WidgetError if `clearIdentity` is selected and the request to the service fails
     */
    resetVisitor: identity.resetVisitor,
    config,

    /** Returns the step in which the visitor grants or denies the consent policy. */
    consent: async (): Promise<ConsentKeeper> => consent,
    connection: () => connection,

    /** Returns the session without its credentials. */
    session,

    /** Returns the reason why the chat has ended, or undefined if the chat has not ended. */
    ended: () => ended,

    /** Subscribes to an event. Returns a function that unsubscribes. */
    on: emitter.on,

    /** Subscribes to the next event of this name. */
    once: emitter.once,
  }

  function setConnection(state: ConnectionState) {
    if (state === connection || (ended && state !== 'ended')) return
    connection = state
    emit('connection.changed', { state })
  }

  /** Ends the chat. `about` has further fields of the event. */
  function setEnd(code: string, canStart: boolean, about: Partial<ReplayReset> = {}) {
    const event = sessionEndOf(code)
    ended = { event, code }
    mayStartNew = canStart
    setConnection('ended')
    if (event) emit(event, { code, ...about })
  }

  /** Sets the state of a chat that starts again or was stopped. It no longer counts as ended. */
  function reset(state: 'idle' | 'connecting') {
    ended = undefined
    setConnection(state)
  }

  function start() {
    identity.closeLeft()
    starting ??= begin(true)
    return starting
  }

  function stop() {
    visit?.close()
    visit = starting = undefined
    reset('idle')
  }

  /**
   * Starts a visit with `given`, else the stored session, else a new one. `asks`: calls the
   * identity provider first.
   */
  async function begin(asks: boolean, given?: GivenSession) {
    reset('connecting')
    features.start()
    const configured = configuration.load()
    const current = createVisit({
      ...options,
      pageContext,
      configured,
      api,
      platform,
      records,
      given,
      emit,
      config,
      consented: consent.run,
      onConnection: setConnection,
      // After a refusal, another attempt would be refused, too.
      onEnd: (code, isRefused, about) => setEnd(code, !isRefused && !!sessionEndOf(code), about),
      onClosed:
        options.identityProvider &&
        ((closed) => {
          setConnection('connecting')
          void identity.followClosed(current, closed)
        }),
      onEvent(event) {
        configuration.handleEvent(event)
        features.handleEvent(event)
      },
      onPage: features.takePage,
    })
    visit = current
    await Promise.all([configured, current.session.start()])
    if (current.session.content() && (!asks || (await identifyAtStart(current)))) current.open()
  }

  async function identifyAtStart(current: Visit) {
    try {
      return !options.identityProvider || (await identity.onStart(current))
    } catch (error) {
      const { code } = toWidgetError(error)
      if (visit !== current) return false
      if (sessionEndOf(code)) current.session.end(code)
      else {
        current.close()
        setEnd(code, true)
      }
      return false
    }
  }
}
