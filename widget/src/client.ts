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
  /** Base URL of the service, for example `https://chat.example.com`. */
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
 * @param loadFeatures loads typing, presence, forms, requests and page reports
 * @param emitter shared with a user interface that has events of its own
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
        onSessionChange: features.changeSession,
        onUnidentified: (code) => onEnd(code, true),
      }),
    'identity_unavailable',
    ({ detail }) => emit('error', detail),
  )

  return {
    ...features.operations,

    /**
     * Resumes the tab's session or creates one, identifies the visitor, then loads the history and opens the stream.
     * Resolves when there is a session or the attempt has failed. Never rejects: events and `ended()` report failures.
     */
    start(): Promise<void> {
      starting ??= begin(true)
      return starting
    },

    /** Closes the connection. The session stays valid until its grant expires: a later `start` resumes it. */
    stop() {
      visit?.close()
      visit = starting = ended = undefined
      setConnection('idle')
    },

    /** Starts a new chat at the visitor's request, if `canStartNew`. The conversation is empty. */
    async startNew(): Promise<void> {
      if (!this.canStartNew()) return
      this.stop()
      await this.start()
    },

    canStartNew: () => !!ended && canRestart,

    /**
     * Puts a message in the outbox. Events report its delivery.
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

    /** Retries a failed message with the same operation id. Returns false if there is none. */
    retryMessage: (clientOperationId: string): boolean => visit?.outbox.retry(clientOperationId) ?? false,

    /** Loads the page before the oldest loaded message. */
    loadOlder: async (): Promise<void> => visit?.history.loadOlder(),

    hasOlder: (): boolean => visit?.history.hasOlder() ?? false,

    messages,

    /** Number of messages from the other side after the last one read. */
    unread: (): number => visit?.conversation.unread() ?? 0,

    /** Marks all messages as read. */
    markRead: (): void => visit?.markRead(),

    /** The unsent text of the composer. */
    draft: (): string => visit?.draft() ?? '',

    /** Stores the unsent text with the session. */
    setDraft(text: string) {
      visit?.session.remember({ draft: text.slice(0, longestDraft) })
    },

    /**
     * Asks the identity provider for an assertion and associates the visitor with its subject. A different subject begins
     * a new session: data of the former one is no longer shown or sent.
     *
     * @param wanted the expected subject; an assertion for another subject is rejected. The assertion decides.
     * @throws WidgetError `identity_unavailable`, `identity_mismatch` or an error of the service; the session stays unchanged
     */
    identify: async (wanted?: VisitorIdentity): Promise<SessionView | undefined> =>
      (await loadIdentity()).identify(wanted),

    /**
     * The visitor has logged out. Their data is removed from the page at once, also if the call fails. The chat continues
     * with a new, anonymous session.
     *
     * @throws WidgetError if the call fails
     */
    clearIdentity: async (): Promise<void> => (await loadIdentity()).clearIdentity(),

    /**
     * Removes the selected data on logout or a change of account.
     *
     * @throws WidgetError if `clearIdentity` is selected and its call fails
     */
    resetVisitor: async (what?: VisitorReset): Promise<void> => (await loadIdentity()).resetVisitor(what),

    config: (): WidgetConfig | undefined => config,

    connection: (): ConnectionState => connection,

    /** The session without its credentials. */
    session,

    /** Why the chat has ended. Undefined while it is active. */
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
