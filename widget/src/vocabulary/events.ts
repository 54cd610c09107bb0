import type {
  Activity,
  AgentRequest,
  Availability,
  ConnectionState,
  ConsentState,
  FormKind,
  FormState,
  MessageAuthor,
  Presence,
  Rating,
  ReplayReset,
  SessionView,
  StoredMessage,
  WidgetConfig,
  WidgetErrorDetail,
  WidgetMessage,
} from './types.ts'

/** Maps each event that this package emits to its payload. */
export interface WidgetEventMap {
  'message.queued': { message: WidgetMessage }
  'message.retrying': { message: WidgetMessage; attempt: number }
  'message.retry.exhausted': { message: WidgetMessage; error: WidgetErrorDetail }
  'message.accepted': { message: StoredMessage }
  'message.received': { message: StoredMessage }
  'message.state.changed': { message: StoredMessage }
  /** An operator has withdrawn a message. Its body is now empty. */
  'message.redacted': { message: StoredMessage }
  /** Written while offline. The message is sent when the network works. */
  'offline.submitted': { message: WidgetMessage }
  'messages.changed': { messages: readonly WidgetMessage[] }
  /** The number of unread messages has changed. */
  'unread.changed': { count: number }
  'typing.started': { author: MessageAuthor }
  'typing.stopped': { author: MessageAuthor }
  'agent.assigned': { agent: { displayName: string; avatarUrl?: string } }
  'agent.unassigned': { agent: { displayName: string; avatarUrl?: string } }
  'presence.changed': { presence: Presence; activity: readonly Activity[] }
  /** An agent requests a navigation. Emitted only if `supports.navigation` is true. */
  'navigation.requested': { request: AgentRequest }
  'navigation.cancelled': { commandId: string }
  'screenshot.requested': { request: AgentRequest }
  'screenshot.cancelled': { requestId: string }
  'requests.changed': { requests: readonly AgentRequest[] }
  /** The consent step has changed. `consent` is undefined if no consent is required. */
  'consent.changed': { consent: ConsentState | undefined }
  'form.changed': { form: FormKind; state: FormState }
  'conversation.closed': Record<string, never>
  'conversation.reopened': Record<string, never>
  /** The operator asks for a rating of the closed conversation. */
  'rating.requested': Record<string, never>
  /** The visitor has rated the closed conversation, maybe in another tab. */
  'rating.given': Rating
  'config.loaded': { config: WidgetConfig }
  /** The installation became online or away. The event `config.loaded` follows. */
  'availability.changed': Availability
  'session.ready': { session: SessionView }
  'session.identified': Record<string, never>
  'session.expired': { code: string }
  'session.revoked': { code: string }
  'session.closed': { code: string }
  'visitor.banned': { code: string }
  'connection.disabled': { code: string }
  /**
   * The stream cannot continue from its position. If `reauthenticationRequired` is true, the session
   * has ended, and `code` is set. Otherwise, the client loads the history again and continues.
   */
  'replay.reset.required': Partial<ReplayReset> & { code?: string }
  'connection.changed': { state: ConnectionState }
  'panel.opened': Record<string, never>
  'panel.closed': Record<string, never>
  error: WidgetErrorDetail
}

export type WidgetEventName = keyof WidgetEventMap

export type Handler<Payload> = (payload: Payload) => void

export interface Emitter {
  /** Returns a function that unsubscribes. A handler is called once per event. */
  on<Name extends WidgetEventName>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
  /** Like `on`, for one event. */
  once<Name extends WidgetEventName>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
  emit<Name extends WidgetEventName>(name: Name, payload: WidgetEventMap[Name]): void
}

/**
 * Creates an emitter. If a handler throws, the others are still called. By default, its error is an
 * uncaught one of the page.
 */
export function createEmitter(onHandlerError: (error: unknown) => void = reportUncaught): Emitter {
  const handlers = new Map<WidgetEventName, Set<Handler<never>>>()

  const on: Emitter['on'] = (name, handler) => {
    const set = handlers.get(name) ?? new Set()
    handlers.set(name, set)
    set.add(handler as Handler<never>)
    return () => set.delete(handler as Handler<never>)
  }

  return {
    on,
    once(name, handler) {
      const off = on(name, (payload) => {
        off()
        handler(payload)
      })
      return off
    },
    emit(name, payload) {
      const { code, recoverable } = payload as Partial<WidgetErrorDetail>
      // A failure that nobody hears of would be hard to find.
      if (name === 'error' && !recoverable && !handlers.get(name)?.size) console.error(`Chat: ${code}`)
      for (const handler of [...(handlers.get(name) ?? [])] as Handler<unknown>[]) {
        try {
          handler(payload)
        } catch (error) {
          onHandlerError(error)
        }
      }
    },
  }
}

function reportUncaught(error: unknown) {
  queueMicrotask(() => {
    throw error
  })
}
