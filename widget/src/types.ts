/**
 * How far a message has come (section 3.1 of the specification).
 *
 * - `pending`: in the outbox, not yet accepted by the service.
 * - `retrying`: a send failed in a way that may pass; another attempt with the same `clientOperationId` is due.
 * - `queued`: accepted and stored by the service.
 * - `sent`, `delivered`, `read`: what the service reports afterwards.
 * - `failed`: no further attempt is made by itself.
 */
export type DeliveryStatus = 'pending' | 'queued' | 'retrying' | 'sent' | 'delivered' | 'read' | 'failed'

export interface MessageAuthor {
  kind: 'visitor' | 'agent' | 'system'
  displayName?: string
  avatarUrl?: string
}

/** A message as the browser holds it. Fields that the service assigns are missing until it has accepted the message. */
export interface WidgetMessage {
  /** Stable for as long as the page lives, whatever else becomes known of the message. */
  key: string
  deliveryStatus: DeliveryStatus
  messageId?: string
  /** Only on the visitor's own messages. */
  clientOperationId?: string
  /** Only on the visitor's own messages. */
  sessionId?: string
  conversationId?: string
  sequence?: number
  author: MessageAuthor
  body: string
  contentType: string
  locale?: string
  /** RFC 3339. */
  createdAt: string
  /** Why the last attempt failed. */
  error?: WidgetErrorDetail
}

/** A failure as the application sees it (section 2.5 of the specification). It never holds text of a request. */
export interface WidgetErrorDetail {
  code: string
  /** Whether trying again, by itself or by hand, can help. */
  recoverable: boolean
}

export interface PageContext {
  /** http(s); the service cuts off query and fragment. */
  url: string
  title?: string
  referrer?: string
  viewport?: { width: number; height: number }
}

/** The answer of session creation and renewal. Holds credentials: never log it. */
export interface SessionContent {
  sessionId: string
  conversationId: string
  accessGrant: string
  expiresAt: string
  renewAfter: string
  renewalToken: string
  replay: { state: 'ready' | 'reset_required'; epoch: string; lastSequence: number; oldestSequence: number }
  continuity: { state: 'new' | 'continued' | 'reset' }
  identity: { state: 'anonymous' | 'verified'; displayName?: string }
}

/** A session without its credentials. */
export type SessionView = Pick<SessionContent, 'sessionId' | 'conversationId' | 'continuity' | 'identity'>

/** Who the host page says the visitor is. Only the assertion of the host's backend decides. */
export interface VisitorIdentity {
  /** The subject that the assertion must have; another one is refused as `identity_mismatch`. */
  externalSubject?: string
  /** Shown if the assertion has no name. */
  displayName?: string
}

/** Gets a signed assertion from the host's backend; undefined if no user is logged in. Called for each use. */
export type IdentityProvider = (wanted?: VisitorIdentity) => Promise<string | undefined>

/** What `resetVisitor` removes. */
export interface VisitorReset {
  /** Ends the session on the service, and begins another one. */
  closeSession?: boolean
  clearHistory?: boolean
  clearDraft?: boolean
  clearIdentity?: boolean
}

/** The public configuration of an installation. */
export interface WidgetConfig {
  publicSiteKey: string
  locale: { default: string; supported: string[] }
  appearance: { title: string; greeting: string; accentColor: string; position: 'left' | 'right'; logoUrl?: string }
  capabilities: Record<string, boolean>
  forms?: Partial<Record<FormKind, FormDefinition>>
  consent?: { required: boolean; policyUrl?: string }
  availability: { online: boolean }
  limits: { bodyMaxLength: number; historyPageMax: number; outboxMax: number; screenshotMaxBytes?: number }
  realtime: { heartbeatSeconds: number; reconnectMinMs: number; reconnectMaxMs: number }
}

/** One event of the stream, as parsed. */
export interface StreamEvent {
  id: string
  sequence: number
  type: string
  occurredAt: string
  data: Record<string, unknown>
}

/**
 * - `idle`: not started, or stopped by the application.
 * - `connecting`: the first connection is being made.
 * - `online`: events arrive live.
 * - `reconnecting`: the stream was lost; messages are still sent if the network works.
 * - `ended`: a terminal condition; nothing is retried any more.
 */
export type ConnectionState = 'idle' | 'connecting' | 'online' | 'reconnecting' | 'ended'

/** The terminal conditions of section 3.2 of the specification that end a session. */
export type SessionEnd =
  | 'session.expired'
  | 'session.revoked'
  | 'session.closed'
  | 'visitor.banned'
  | 'connection.disabled'
  | 'replay.reset.required'

/** The two forms of an installation, as the configuration names them. */
export type FormKind = 'preChat' | 'offline'

export interface FormField {
  name: string
  label: string
  type: 'text' | 'email' | 'tel' | 'textarea'
  required: boolean
  maxLength: number
}

export interface FormDefinition {
  fields: FormField[]
}

/** One issue of `ValidationFailed`: a field's JSON pointer and the broken rule, never the value. */
export interface FieldIssue {
  path: string
  rule: string
}

/** Broken rules by the name of the field. */
export type FormIssues = Readonly<Record<string, string>>

/**
 * - `open`: to be filled in.
 * - `sending`: under way, attempts after a failure among it.
 * - `failed`: not accepted; `issues` or `error` has the reason. The form can be submitted again.
 * - `submitted`: the service has it (202).
 */
export interface FormState {
  status: 'open' | 'sending' | 'failed' | 'submitted'
  issues?: FormIssues
  error?: WidgetErrorDetail
  /** The submitted values, until the service has accepted them. */
  fields?: Readonly<Record<string, string>>
}

export interface Agent {
  displayName: string
  avatarUrl?: string
}

/** Something of the conversation that is no message, in the order of the log. */
export interface Activity {
  key: string
  type:
    | 'agent.assigned'
    | 'agent.unassigned'
    | 'conversation.closed'
    | 'conversation.reopened'
    | 'form.submitted'
    /** An agent's request turned out to be answered already, in another tab for example. */
    | 'request.resolved'
    | `navigation.${NavigationOutcome | 'expired' | 'cancelled'}`
    | `screenshot.${'uploaded' | 'denied' | 'unsupported' | 'expired' | 'cancelled'}`
  /** Of agent.assigned and agent.unassigned. */
  agentName?: string
  /** It stands after the message of this sequence. */
  sequence: number
  /** RFC 3339. */
  at: string
}

/** The other side: the assigned agent and typing indicators. */
export interface Presence {
  agent?: Agent
  /** The agents who type just now. */
  typing: readonly MessageAuthor[]
  isClosed: boolean
}

export type NavigationOutcome = 'accepted' | 'declined' | 'completed' | 'failed' | 'unsupported'

export type ScreenshotConsent = 'granted' | 'denied' | 'unsupported'

export interface UploadTerms {
  maxBytes: number
  contentTypes: string[]
  /** RFC 3339. */
  expiresAt: string
}

export interface UploadedScreenshot {
  requestId: string
  state: 'uploaded'
  byteLength: number
  /** Lower-case hex. */
  sha256: string
}

/** A request of an agent that waits for the visitor. */
export interface AgentRequest {
  /** The `commandId` of a navigation, the `requestId` of a screenshot. */
  id: string
  kind: 'navigation' | 'screenshot'
  /** Of a navigation: where to, http(s). */
  url?: string
  label?: string
  /** Of a screenshot: what it is for. */
  purpose?: string
  /** By the clock of this browser, milliseconds since the epoch. */
  expiresAtMs: number
  /** `accepted`: the page is being left. `granted`: the upload is due. */
  state: 'requested' | 'accepted' | 'granted'
  /** Of a granted screenshot. */
  upload?: UploadTerms
}

/** Every event of the package with its payload. */
export interface WidgetEventMap {
  'message.queued': { message: WidgetMessage }
  'message.retrying': { message: WidgetMessage; attempt: number }
  'message.retry.exhausted': { message: WidgetMessage; error: WidgetErrorDetail }
  'message.accepted': { message: WidgetMessage }
  'message.received': { message: WidgetMessage }
  'message.state.changed': { message: WidgetMessage }
  /** The browser has taken a message in while there is no connection. The service does not have it. */
  'offline.submitted': { message: WidgetMessage }
  'messages.changed': { messages: readonly WidgetMessage[] }
  /** How many messages of the other side came since the visitor last looked. */
  'unread.changed': { count: number }
  'typing.started': { author: MessageAuthor }
  'typing.stopped': { author: MessageAuthor }
  'agent.assigned': { agent: { displayName: string; avatarUrl?: string } }
  'agent.unassigned': { agent: { displayName: string; avatarUrl?: string } }
  'presence.changed': { presence: Presence; activity: readonly Activity[] }
  /** A new request. The application declares with `supports` which ones it handles. */
  'navigation.requested': { request: AgentRequest }
  'navigation.cancelled': { commandId: string }
  'screenshot.requested': { request: AgentRequest }
  'screenshot.cancelled': { requestId: string }
  'requests.changed': { requests: readonly AgentRequest[] }
  'form.changed': { form: FormKind; state: FormState }
  'conversation.closed': Record<string, never>
  'conversation.reopened': Record<string, never>
  'config.loaded': { config: WidgetConfig }
  'session.ready': { session: SessionView }
  'session.identified': Record<string, never>
  'session.expired': { code: string }
  'session.revoked': { code: string }
  'session.closed': { code: string }
  'visitor.banned': { code: string }
  'connection.disabled': { code: string }
  /** Surfaced only when a new authentication is needed; a plain reset is healed from the history. */
  'replay.reset.required': { code: string }
  'connection.changed': { state: ConnectionState }
  'panel.opened': Record<string, never>
  'panel.closed': Record<string, never>
  error: WidgetErrorDetail
}

export type WidgetEventName = keyof WidgetEventMap
