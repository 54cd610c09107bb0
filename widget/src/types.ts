/**
 * Delivery state of a message (section 3.1 of the specification).
 *
 * - `pending`: in the outbox, not yet accepted by the service.
 * - `retrying`: an attempt failed; another attempt with the same `clientOperationId` follows.
 * - `queued`: accepted and stored by the service.
 * - `sent`, `delivered`, `read`: later states that the service reports.
 * - `failed`: not delivered; no further automatic attempt follows.
 */
export type DeliveryStatus = 'pending' | 'queued' | 'retrying' | 'sent' | 'delivered' | 'read' | 'failed'

export interface MessageAuthor {
  kind: 'visitor' | 'agent' | 'system'
  displayName?: string
  avatarUrl?: string
}

/**
 * A message in the browser. Fields that the service assigns are undefined until the service has
 * accepted the message.
 */
export interface WidgetMessage {
  /**
   * Identifies the message on this page. The key stays the same after the service has assigned a
   * message id.
   */
  key: string
  deliveryStatus: DeliveryStatus
  messageId?: string
  /** Operation key of the message. Set only on messages of this visitor. */
  clientOperationId?: string
  /** Session in which the message was sent. Set only on messages of this visitor. */
  sessionId?: string
  conversationId?: string
  sequence?: number
  author: MessageAuthor
  body: string
  contentType: string
  locale?: string
  /** Time at which the message was created, in RFC 3339 format. */
  createdAt: string
  /** Failure of the last attempt to send the message. */
  error?: WidgetErrorDetail
}

/** A message that the service has stored. */
export type StoredMessage = WidgetMessage & Required<Pick<WidgetMessage, 'messageId' | 'conversationId' | 'sequence'>>

/** A failure that is reported to the application. It contains no data of the request. */
export interface WidgetErrorDetail {
  code: string
  /** True if a retry may succeed, either by the client or by the visitor. */
  recoverable: boolean
}

export interface PageContext {
  /** An http or https URL of the visitor's page. The service removes query and fragment. */
  url: string
  title?: string
  referrer?: string
  viewport?: { width: number; height: number }
}

/**
 * Response to session creation and renewal. It contains credentials, so it must never be logged.
 */
export interface SessionContent {
  sessionId: string
  conversationId: string
  accessGrant: string
  expiresAt: string
  renewAfter: string
  /** Undefined if the service has an earlier version. The session then ends with its grant. */
  renewableUntil?: string
  renewalToken: string
  replay: { state: 'ready' | 'reset_required'; epoch: string; lastSequence: number; oldestSequence: number }
  continuity: { state: 'new' | 'continued' | 'reset' }
  identity: { state: 'anonymous' | 'verified'; displayName?: string }
}

/** Session data without credentials, which the application may read. */
export type SessionView = Pick<SessionContent, 'sessionId' | 'conversationId' | 'continuity' | 'identity'>

/** The visitor that the host page expects. Only the assertion decides who the visitor is. */
export interface VisitorIdentity {
  /**
   * Subject that the assertion must have. An assertion with another subject is rejected with
   * `identity_mismatch`.
   */
  externalSubject?: string
  /** Name to show if the assertion contains no name. */
  displayName?: string
}

/**
 * Requests a signed assertion from the host's backend. Resolves to undefined if no user is logged
 * in.
 */
export type IdentityProvider = (wanted?: VisitorIdentity) => Promise<string | undefined>

/** Options that select the data that `resetVisitor` removes. */
export interface VisitorReset {
  /** Ends the session and starts a new one. */
  closeSession?: boolean
  clearHistory?: boolean
  clearDraft?: boolean
  clearIdentity?: boolean
}

/** The public configuration of an installation. */
export interface WidgetConfig {
  publicSiteKey: string
  locale: { default: string; supported: string[] }
  appearance: {
    title: string
    greeting: string
    accentColor: string
    position: 'left' | 'right'
    logoUrl?: string
    /** Texts in other languages, by locale tag. */
    translations?: Record<string, { title?: string; greeting?: string }>
  }
  capabilities: Record<string, boolean>
  forms?: Partial<Record<FormKind, FormDefinition>>
  consent?: { required: boolean; policyUrl?: string; policyVersion?: string }
  availability: Availability
  limits: { bodyMaxLength: number; historyPageMax: number; outboxMax: number; screenshotMaxBytes?: number }
  realtime: { heartbeatSeconds: number; reconnectMinMs: number; reconnectMaxMs: number }
}

/** Availability of the chat that visitors see: online or away. */
export interface Availability {
  online: boolean
  /** Time at which the opening hours next change the availability, in RFC 3339 format. */
  nextChangeAt?: string
}

/**
 * One event of the stream. Its JSON was parsed, but its fields were not all validated. An event that
 * is not in the log has an undefined id and sequence.
 */
export interface StreamEvent {
  id: string
  sequence: number
  type: string
  occurredAt: string
  data: Record<string, unknown>
}

/**
 * State of the event stream.
 *
 * - `idle`: not started, or stopped by the application.
 * - `connecting`: the first connection is being opened.
 * - `online`: the stream delivers events as they happen.
 * - `reconnecting`: the connection was lost and is opened again. Messages are still sent if the
 *   network works.
 * - `ended`: the session has ended and nothing is retried.
 */
export type ConnectionState = 'idle' | 'connecting' | 'online' | 'reconnecting' | 'ended'

/** Events that end a session (section 3.2 of the specification). */
export type SessionEnd =
  | 'session.expired'
  | 'session.revoked'
  | 'session.closed'
  | 'visitor.banned'
  | 'connection.disabled'
  | 'replay.reset.required'

/** The forms of an installation. The names are the same as in the configuration. */
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

/**
 * A rejected field: the JSON pointer to the field and the rule that its value violates. Never
 * contains the value.
 */
export interface FieldIssue {
  path: string
  rule: string
}

/** Maps the name of each rejected field to the rule that its value violates. */
export type FormIssues = Readonly<Record<string, string>>

export type ConsentDecision = 'granted' | 'denied'

/** State of the consent step. `status` is `asked` while the visitor has to decide. */
export interface ConsentState {
  status: 'asked' | ConsentDecision
  policyUrl?: string
  policyVersion: string
  isSending: boolean
  isHolding: boolean
  error?: WidgetErrorDetail
}

/**
 * State of a form's submission.
 *
 * - `open`: not submitted yet.
 * - `sending`: being submitted, with retries.
 * - `failed`: not accepted; the reason is in `issues` or `error`. The visitor can submit the form
 *   again.
 * - `submitted`: accepted by the service (202).
 */
export interface FormState {
  status: 'open' | 'sending' | 'failed' | 'submitted'
  issues?: FormIssues
  error?: WidgetErrorDetail
  /** Values that the visitor has submitted. Undefined after the service has accepted them. */
  fields?: Readonly<Record<string, string>>
}

export interface Agent {
  displayName: string
  avatarUrl?: string
}

/** A conversation event that is not a message. */
export interface Activity {
  key: string
  type:
    | 'agent.assigned'
    | 'agent.unassigned'
    | 'conversation.closed'
    | 'conversation.reopened'
    | 'form.submitted'
    /** The request was answered elsewhere, for example in another tab. */
    | 'request.resolved'
    | `navigation.${NavigationOutcome | 'expired' | 'cancelled'}`
    | `screenshot.${'uploaded' | 'denied' | 'unsupported' | 'expired' | 'cancelled'}`
  /** Display name of the agent. Set only for `agent.assigned` and `agent.unassigned`. */
  agentName?: string
  /** Sequence of the message after which the activity is shown. */
  sequence: number
  /** Time of the event, in RFC 3339 format. */
  at: string
}

/** The assigned agent and typing indicators. */
export interface Presence {
  agent?: Agent
  /** The agents who are typing now. */
  typing: readonly MessageAuthor[]
  isClosed: boolean
}

export type NavigationOutcome = 'accepted' | 'declined' | 'completed' | 'failed' | 'unsupported'

export type ScreenshotConsent = 'granted' | 'denied' | 'unsupported'

export interface UploadTerms {
  maxBytes: number
  contentTypes: string[]
  /** Time after which the service rejects the upload, in RFC 3339 format. */
  expiresAt: string
}

export interface UploadedScreenshot {
  requestId: string
  state: 'uploaded'
  byteLength: number
  /** SHA-256 digest of the image, in lower-case hex. */
  sha256: string
}

/** A pending navigation or screenshot request of an agent. */
export interface AgentRequest {
  /** Id of the request: the `commandId` of a navigation or the `requestId` of a screenshot. */
  id: string
  kind: 'navigation' | 'screenshot'
  /**
   * URL to navigate to. It is an http or https URL, because the client refuses requests with other
   * URLs.
   */
  url?: string
  label?: string
  /** Text that says why the agent asks for a screenshot. */
  purpose?: string
  /** Time at which the request expires, in milliseconds of the browser's clock. */
  expiresAtMs: number
  /**
   * State of a request that has not ended. `requested`: the visitor has not answered. `accepted`:
   * the page is about to navigate. `granted`: the visitor allowed the screenshot, which is not
   * uploaded yet.
   */
  state: 'requested' | 'accepted' | 'granted'
  /** Limits of the screenshot's upload. Set once the visitor has allowed the screenshot. */
  upload?: UploadTerms
}
