import type { SupportedRequests } from './agent-requests.ts'
import { createApi } from './api.ts'
import { createConfigLoader } from './config-loader.ts'
import { isOneSessionsEnd, sessionEndOf, toWidgetError, WidgetError } from './errors.ts'
import { createEmitter, type Emitter } from './events.ts'
import { createLateFeatures, type LoadFeatures } from './late-features.ts'
import { loadOnce } from './load-once.ts'
import { messageBody } from './message-text.ts'
import { newRandomId, type Platform, steadyLifecycle, systemClock } from './platform.ts'
import type { GivenSession } from './session.ts'
import { createSessionRecords } from './session-record.ts'
import { type StorageMode, storageFor } from './storage.ts'
import type {
  ConnectionState,
  IdentityProvider,
  PageContext,
  SessionEnd,
  SessionView,
  VisitorIdentity,
  VisitorReset,
  WidgetConfig,
  WidgetEventMap,
  WidgetMessage,
} from './types.ts'
import { createVisit, type Visit } from './visit.ts'

export interface ServiceClientOptions {
  /** The installation's public key. Not a credential. */
  siteKey: string
  /** Where the service answers, for example `https://chat.example.com`. */
  apiBaseUrl: string
  /** Asked at the start, and by `identify`, for a signed assertion of who the visitor is. Never stored. */
  identityProvider?: IdentityProvider
  /** Where the session is kept; `session` (the tab's session storage) if left out. Never localStorage, never a cookie. */
  storage?: StorageMode
  /** Locale tag of the visitor, for example `de-CH`. */
  locale?: string
  /** The page the visitor is on, asked for at each use. */
  pageContext?: () => PageContext | undefined
  /** Which requests of agents the application shows to the visitor. The others are answered `unsupported`. */
  supports?: Partial<SupportedRequests>
  /** Replaces parts of the surroundings, for tests and for hosts that are no browser. */
  platform?: Partial<Platform>
}

export type ServiceClient = ReturnType<typeof createServiceClient>

const notStarted = () => Promise.reject(new WidgetError('not_started'))

/** A draft is kept up to this length. */
const longestDraft = 16_384

/**
 * The chat without any user interface: session, messages and events of section 4.4 of the specification. Nothing is
 * requested, read or written before `start`.
 *
 * @param loadFeatures gets what is needed beside messages; a user interface, which always needs it, brings it along
 * @param emitter given by a user interface that has events of its own to tell
 */
export function createServiceClient(
  options: ServiceClientOptions,
  loadFeatures: LoadFeatures,
  emitter: Emitter<WidgetEventMap> = createEmitter<WidgetEventMap>(),
) {
  const { emit } = emitter
  const pageContext = () => options.pageContext?.()
  const session = (): SessionView | undefined => visit?.view()
  const messages = (): readonly WidgetMessage[] => visit?.conversation.messages.all() ?? []
  const platform: Platform = {
    fetch: (...request) => fetch(...request),
    clock: systemClock,
    random: Math.random,
    newId: newRandomId,
    lifecycle: steadyLifecycle,
    storage: storageFor(options.storage ?? 'session'),
    ...options.platform,
  }
  const api = createApi({ ...platform, apiBaseUrl: options.apiBaseUrl })
  const records = createSessionRecords(platform.storage, options.siteKey)
  const features = createLateFeatures(loadFeatures, {
    api,
    platform,
    emitter,
    siteKey: options.siteKey,
    supports: options.supports,
    config: () => config,
    session,
    messages,
    pageContext,
    grants: () => visit?.session.withGrant ?? notStarted,
  })
  let visit: Visit | undefined
  let starting: Promise<void> | undefined
  let config: WidgetConfig | undefined
  let connection: ConnectionState = 'idle'
  let ended: { event?: SessionEnd; code: string } | undefined
  let canRestart = false
  const configLoader = createConfigLoader({
    api,
    platform,
    siteKey: options.siteKey,
    isRunning: () => starting !== undefined && !ended,
    async onLoaded(loaded) {
      config = loaded
      await features.configure()
      emit('config.loaded', { config })
    },
  })
  /** Most pages have no identity provider, so this part is loaded at its first use. */
  const loadIdentity = loadOnce(
    async () =>
      (await import('./identity.ts')).createIdentity({
        api,
        platform,
        records,
        emit,
        provider: options.identityProvider,
        current: () => (ended ? undefined : visit),
        shown: () => visit,
        started: () => starting,
        drop(reason) {
          visit?.close(reason)
          visit = undefined
        },
        begin,
        onConnection: setConnection,
        onSessionChange: features.goOn,
        onUnidentified: (code) => onEnd(code, true),
      }),
    'identity_unavailable',
    ({ detail }) => emit('error', detail),
  )

  return {
    ...features.operations,

    /**
     * Takes up the tab's session or creates one, settles who the visitor is, then loads the history and opens the stream.
     * Resolves when there is a session, or none is to be had: never rejects, what went wrong is told by events and `ended()`.
     */
    start(): Promise<void> {
      starting ??= begin(true)
      return starting
    },

    /** Closes the connection. The session stays alive until its grant ends: a later `start` takes it up again. */
    stop() {
      visit?.close()
      visit = starting = ended = undefined
      setConnection('idle')
    },

    /** When the visitor asks for it after an end that leaves them the right to chat: begins anew, the conversation empty. */
    async startNew(): Promise<void> {
      if (!this.canStartNew()) return
      this.stop()
      await this.start()
    },

    canStartNew: () => !!ended && canRestart,

    /**
     * Puts a message in the outbox. What becomes of it is told by events.
     *
     * @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or `session_ended`
     */
    sendMessage(text: string): WidgetMessage {
      if (ended) throw new WidgetError('session_ended', { terminal: true })
      if (!visit) throw new WidgetError('not_started')
      const body = messageBody(text, config?.limits.bodyMaxLength)
      const { locale } = options
      const message = visit.send({
        input: { clientOperationId: platform.newId(), body, contentType: 'text', locale, pageContext: pageContext() },
        createdAt: new Date(platform.clock.now()).toISOString(),
      })
      emit('message.queued', { message })
      if (!platform.lifecycle.isOnline()) emit('offline.submitted', { message })
      return message
    },

    /** Sends a failed message once more, as the same operation. False where there is none to send. */
    retryMessage: (clientOperationId: string): boolean => visit?.outbox.retry(clientOperationId) ?? false,

    /** Loads the messages before the oldest one held. */
    loadOlder: async (): Promise<void> => visit?.history.loadOlder(),

    hasOlder: (): boolean => visit?.history.hasOlder() ?? false,

    messages,

    /** How many messages of the other side came since the visitor last looked. */
    unread: (): number => visit?.conversation.unread() ?? 0,

    /** The visitor sees the conversation. */
    markRead: (): void => visit?.markRead(),

    /** What the visitor was writing when the page was left. */
    draft: (): string => visit?.draft() ?? '',

    /** Keeps what the visitor is writing, for as long as the session is kept. */
    setDraft(text: string) {
      visit?.session.remember({ draft: text.slice(0, longestDraft) })
    },

    /**
     * Asks the identity provider for an assertion and associates the visitor with its subject. Another subject than before begins
     * a new session: nothing of the one before is shown or sent any more.
     *
     * @param wanted who it should be: an assertion about somebody else is refused. The assertion decides, not this.
     * @throws WidgetError `identity_unavailable`, `identity_mismatch`, or what the service answered; the session stays as it was
     */
    identify: async (wanted?: VisitorIdentity): Promise<SessionView | undefined> =>
      (await loadIdentity()).identify(wanted),

    /**
     * The visitor has logged out. What was theirs leaves the page at once, whatever the service answers; then the chat goes on
     * with a new, anonymous session.
     *
     * @throws WidgetError where the service could not be told
     */
    clearIdentity: async (): Promise<void> => (await loadIdentity()).clearIdentity(),

    /**
     * Takes away what was asked for, on logout or a change of account.
     *
     * @throws WidgetError where `clearIdentity` was asked for and the service could not be told
     */
    resetVisitor: async (what?: VisitorReset): Promise<void> => (await loadIdentity()).resetVisitor(what),

    config: (): WidgetConfig | undefined => config,

    connection: (): ConnectionState => connection,

    /** The session without its credentials. */
    session,

    /** Why nothing is retried any more. */
    ended: (): Readonly<{ event?: SessionEnd; code: string }> | undefined => ended,

    /** Subscribes to an event; the answer unsubscribes. */
    on: emitter.on,
  }

  /** @param asks whether the identity provider is asked who the visitor is */
  async function begin(asks: boolean, given?: GivenSession): Promise<void> {
    ended = undefined
    setConnection('connecting')
    const recalled = features.start()
    const current = createVisit({
      ...options,
      api,
      platform,
      records,
      given,
      emit,
      config: () => config,
      onConnection: setConnection,
      onEnd,
      onClosed:
        options.identityProvider &&
        ((closed) => {
          setConnection('connecting')
          loadIdentity().then((identity) => identity.followClosed(current, closed), closed.end)
        }),
      onEvent: features.takeEvent,
    })
    visit = current
    await Promise.all([configLoader.load(), current.session.start(), recalled])
    if (current.session.content() && (!asks || (await settle(current)))) current.open()
  }

  async function settle(current: Visit): Promise<boolean> {
    try {
      return !options.identityProvider || (await (await loadIdentity()).settle(current))
    } catch (error) {
      if (visit !== current) return false
      current.close()
      onEnd(toWidgetError(error).code, true)
      return false
    }
  }

  /** @param isUnidentified the visitor's identity is unknown; a new start asks for it again */
  function onEnd(code: string, isUnidentified = false) {
    const event = sessionEndOf(code)
    ended = { event, code }
    canRestart = event ? isOneSessionsEnd(code) : isUnidentified
    setConnection('ended')
    if (event) emit(event, { code })
  }

  function setConnection(state: ConnectionState) {
    if (state === connection || (ended && state !== 'ended' && state !== 'idle')) return
    connection = state
    if (state === 'online') configLoader.hurry()
    emit('connection.changed', { state })
  }
}
