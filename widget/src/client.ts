import type { SupportedRequests } from './agent-requests.ts'
import { createApi } from './api.ts'
import { loadConfig } from './config.ts'
import { createConversation } from './conversation.ts'
import { sessionEndOf, toWidgetError, WidgetError } from './errors.ts'
import { createEventStream, type EventStream } from './event-stream.ts'
import { createEmitter, type Emitter, type Handler } from './events.ts'
import { createFeatures } from './features.ts'
import { createHistory, type History } from './history.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { newUuid, type Platform, steadyLifecycle, systemClock } from './platform.ts'
import { createSession, type Session } from './session.ts'
import { createSessionRecords } from './session-record.ts'
import { type StorageMode, storageFor } from './storage.ts'
import type {
  ConnectionState,
  PageContext,
  SessionEnd,
  SessionView,
  WidgetConfig,
  WidgetEventMap,
  WidgetMessage,
} from './types.ts'

export interface ServiceClientOptions {
  /** The installation's public key. Not a credential. */
  siteKey: string
  /** Where the service answers, for example `https://chat.example.com`. */
  apiBaseUrl: string
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

/** What runs between a start and its end. */
interface Run {
  session: Session
  outbox: Outbox
  history: History
  stream?: EventStream
}

/**
 * The chat without any user interface: session, messages and events of section 4.4 of the specification. Nothing is
 * requested, read or written before `start`.
 *
 * @param emitter given by a user interface that has events of its own to tell.
 */
export function createServiceClient(
  options: ServiceClientOptions,
  emitter: Emitter<WidgetEventMap> = createEmitter<WidgetEventMap>(),
) {
  const platform: Platform = {
    fetch: (input, init) => globalThis.fetch(input, init),
    clock: systemClock,
    random: Math.random,
    newId: newUuid,
    lifecycle: steadyLifecycle,
    storage: storageFor(options.storage ?? 'session'),
    ...options.platform,
  }
  const { siteKey, locale, pageContext } = options
  const api = createApi({
    apiBaseUrl: options.apiBaseUrl,
    fetch: platform.fetch,
    clock: platform.clock,
    upload: platform.upload,
  })
  const records = createSessionRecords(platform.storage, siteKey)
  const conversation = createConversation(emitter)
  const features = createFeatures({
    api,
    platform,
    emitter,
    siteKey,
    supports: options.supports,
    config: () => config,
    pageContext: () => pageContext?.(),
    withGrant: (call) => run?.session.withGrant(call) ?? Promise.reject(new WidgetError('not_started')),
  })
  let run: Run | undefined
  let starting: Promise<void> | undefined
  let config: WidgetConfig | undefined
  let connection: ConnectionState = 'idle'
  let ended: { event?: SessionEnd; code: string } | undefined

  return {
    ...features.operations,

    /**
     * Takes up the tab's session or creates one, then loads the history and opens the stream. Resolves when there is a
     * session, or none is to be had: never rejects, what went wrong is told by events and `ended()`.
     */
    start(): Promise<void> {
      starting ??= begin()
      return starting
    },

    /** Closes the connection. The session stays alive until its grant ends: a later `start` takes it up again. */
    stop() {
      dispose()
      starting = undefined
      ended = undefined
      conversation.messages.clear()
      setConnection('idle')
    },

    /** After `session.expired` or `session.closed`, when the visitor asks for it: a new session, an empty conversation. */
    startNew(): Promise<void> {
      if (!ended || !this.canStartNew()) return Promise.resolve()
      this.stop()
      return this.start()
    },

    canStartNew: () => ended?.event === 'session.expired' || ended?.event === 'session.closed',

    /**
     * Puts a message in the outbox. What becomes of it is told by events.
     *
     * @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or `session_ended`
     */
    sendMessage(text: string): WidgetMessage {
      if (ended) throw new WidgetError('session_ended', { terminal: true })
      if (!run) throw new WidgetError('not_started')
      const body = sendable(text)
      if (body.trim() === '') throw new WidgetError('message_empty')
      if (body.length > (config?.limits.bodyMaxLength ?? 4_000)) throw new WidgetError('message_too_long')
      if (run.outbox.size() >= (config?.limits.outboxMax ?? 50))
        throw new WidgetError('outbox_full', { retryable: true })
      const entry = { clientOperationId: platform.newId(), body, contentType: 'text' as const, locale }
      const message = conversation.addOwn(entry, new Date(platform.clock.now()).toISOString())
      run.outbox.add({ ...entry, pageContext: pageContext?.() })
      return message
    },

    /** Sends a failed message once more, as the same operation. False where there is none to send. */
    retryMessage: (clientOperationId: string): boolean => run?.outbox.retry(clientOperationId) ?? false,

    /** Loads the messages before the oldest one held. */
    loadOlder: (): Promise<void> => run?.history.loadOlder() ?? Promise.resolve(),

    hasOlder: (): boolean => run?.history.hasOlder() ?? false,

    messages: (): readonly WidgetMessage[] => conversation.messages.all(),

    config: (): WidgetConfig | undefined => config,

    connection: (): ConnectionState => connection,

    /** The session without its credentials. */
    session: (): SessionView | undefined => run && viewOf(run),

    /** Why nothing is retried any more. */
    ended: (): Readonly<{ event?: SessionEnd; code: string }> | undefined => ended,

    /** Subscribes to an event; the answer unsubscribes. */
    on<Name extends keyof WidgetEventMap>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void {
      return emitter.on(name, handler)
    },
  }

  async function begin(): Promise<void> {
    setConnection('connecting')
    features.load()
    const current = assemble()
    run = current
    const [, started] = await Promise.all([takeConfig(), current.session.start()])
    if (run !== current || !started || ended) return
    current.outbox.start()
    current.stream = openStream(current, started.content.replay.lastSequence, config)
    current.stream.start()
    const view = viewOf(current)
    if (view) emitter.emit('session.ready', { session: view })
    await current.history.loadNewest().catch((error) => emitter.emit('error', toWidgetError(error).detail))
  }

  async function takeConfig() {
    config = (await loadConfig(api, siteKey, platform)) ?? config
    if (config) emitter.emit('config.loaded', { config })
  }

  function viewOf(current: Run): SessionView | undefined {
    const content = current.session.content()
    if (!content) return undefined
    const { sessionId, conversationId, continuity, identity } = content
    return { sessionId, conversationId, continuity, identity }
  }

  function assemble(): Run {
    const session = createSession({
      api,
      platform,
      records,
      siteKey,
      locale,
      pageContext,
      onEnd,
      onError: (error) => emitter.emit('error', error),
    })
    const outbox = createOutbox({
      platform,
      send: (entry) => session.withGrant((grant) => api.sendMessage(entry, grant)),
      onState: conversation.setOwnState,
      onRetrying: conversation.tellRetrying,
      onExhausted: conversation.tellExhausted,
      onAccepted: conversation.takeAnswer,
    })
    const history = createHistory({
      platform,
      messages: conversation.messages,
      fetchPage: (range) => session.withGrant((grant) => api.history(range, grant)),
      onPage: conversation.tellChanged,
      onMessage(message, missed) {
        conversation.take(message, missed)
        if (message.clientOperationId) outbox.settle(message.clientOperationId)
      },
    })
    return { session, outbox, history }
  }

  function openStream({ session, outbox, history }: Run, lastSequence: number, settings: WidgetConfig | undefined) {
    const realtime = settings?.realtime
    return createEventStream({
      platform,
      settings: {
        heartbeatMs: (realtime?.heartbeatSeconds ?? 15) * 1_000,
        reconnectMinMs: realtime?.reconnectMinMs ?? 500,
        reconnectMaxMs: realtime?.reconnectMaxMs ?? 20_000,
      },
      position: session.position() ?? { sequence: lastSequence },
      connect: ({ sequence, lastEventId }, signal) =>
        session.withGrant((grant) => api.events({ afterSequence: sequence, lastEventId }, grant, signal)),
      onEvent(event) {
        conversation.takeEvent(event, outbox.settle)
        features.takeEvent(event)
      },
      onPosition: session.savePosition,
      onBehind: (position) => history.fillFrom(position.sequence),
      onReset: async () => ({ sequence: await history.reload() }),
      onState: setConnection,
      onEnd: session.end,
      onFailure(failure) {
        emitter.emit('error', { code: 'realtime_terminal_failure', recoverable: false })
        session.end(failure && sessionEndOf(failure.code), failure?.code ?? 'realtime_terminal_failure')
      },
    })
  }

  /** A terminal condition: everything stops, and whatever was waiting is told as not sent. */
  function onEnd(event: SessionEnd | undefined, code: string) {
    ended = { event, code }
    run?.stream?.stop()
    run?.history.stop()
    run?.outbox.stop(new WidgetError(code, { terminal: true }))
    setConnection('ended')
    if (event) emitter.emit(event, { code })
  }

  function dispose() {
    run?.stream?.stop()
    run?.history.stop()
    run?.outbox.dispose()
    run?.session.stop()
    run = undefined
  }

  function setConnection(state: ConnectionState) {
    if (state === connection) return
    if (ended && state !== 'ended' && state !== 'idle') return
    connection = state
    emitter.emit('connection.changed', { state })
  }
}

/** The text as the service takes it: newlines as such, no other control characters, no broken characters. */
function sendable(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\t\n]/gu, '')
    .toWellFormed()
}
