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
  kind: 'visitor' | 'agent' | 'bot' | 'system'
  displayName?: string
  avatarUrl?: string
}

/**
 * A message in the browser. Fields that the service assigns are undefined until the service has
 * accepted the message.
 */
export interface WidgetMessage {
  /** Identifies the message on this page, before and after the service has assigned an id. */
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
  /** Answers of a bot's message, which the visitor can send as messages. */
  quickReplies?: readonly string[]
  /** Time at which the message was created, in RFC 3339 format. */
  createdAt: string
  /** Time at which an operator withdrew the message, in RFC 3339 format. The body is then empty. */
  redactedAt?: string
  /** True while a bot writes the message. The body is the text so far. */
  growing?: boolean
  /** Failure of the last attempt to send the message. */
  error?: WidgetErrorDetail
  /** Number of times that the message has failed. Undefined if it has never failed. */
  failureVersion?: number
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
  renewableUntil: string
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

/** Requests a signed assertion from the host's backend, or undefined if no user is logged in. */
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
  /** Half of the newest conversations were answered within this time. Absent if it is not known. */
  usualAnswerMinutes?: number
  limits: { bodyMaxLength: number; historyPageMax: number; outboxMax: number; screenshotMaxBytes?: number }
  realtime: { heartbeatSeconds: number; reconnectMinMs: number; reconnectMaxMs: number }
}

/** Availability of the chat that visitors see: online or away. */
export interface Availability {
  online: boolean
  /** Time at which the opening hours next change the availability, in RFC 3339 format. */
  nextChangeAt?: string
}

export interface Rating {
  /** 1 to 5; 5 is the best. */
  score: number
  /** One line of at most 500 characters. */
  comment?: string
}

/** Whether the visitor may rate the closed conversation, or has rated it. */
export type RatingState = 'requested' | 'given'

/**
 * One event of the stream. Its JSON was parsed, but its fields were not all validated. An event that
 * is not in the log has an undefined id and sequence.
 */
export interface StreamEvent {
  id: string
  sequence: number
  type: string
  /** What to do if the type is unknown: `informational`, `security` or `command`. */
  category?: string
  occurredAt: string
  data: Record<string, unknown>
}

/** Why a stream cannot resume from its position, and whether the session ends with it. */
export interface ReplayReset {
  reason: string
  reauthenticationRequired: boolean
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
