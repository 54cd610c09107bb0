import type {
  AcknowledgedScreenshot,
  ErrorEnvelope,
  HistoryPage,
  MessageAuthor,
  NavigationAcknowledgement,
  Rating,
  ScreenshotAcknowledgement,
  ServiceErrorCode,
  ServiceMessage,
  SessionContent,
  WidgetConfig,
} from './gen/wire.ts'

export type {
  MessageAuthor,
  PageContext,
  Rating,
  SessionContent,
  UploadedScreenshot,
  WidgetConfig,
} from './gen/wire.ts'

/**
 * Delivery state of a message (section 3.1 of the specification).
 *
 * - `pending`: in the outbox, not yet accepted by the service.
 * - `retrying`: an attempt failed; another attempt with the same `clientOperationId` follows.
 * - `queued`: accepted and stored by the service.
 * - `sent`, `delivered`, `read`: later states that the service reports.
 * - `failed`: not delivered; no further automatic attempt follows.
 */
export type DeliveryStatus = 'pending' | 'retrying' | ServiceMessage['state']

/**
 * A message in the browser. Fields that the service assigns are undefined until the service has accepted the
 * message. `createdAt` and `redactedAt` are times in RFC 3339 format. A withdrawn message has no text.
 */
export interface WidgetMessage
  extends Omit<ServiceMessage, 'messageId' | 'conversationId' | 'sequence' | 'state' | 'contentType'>,
    Partial<Pick<ServiceMessage, 'messageId' | 'conversationId' | 'sequence'>> {
  /** Identifies the message on this page, before and after the service has assigned an id. */
  key: string
  deliveryStatus: DeliveryStatus
  contentType: string
  /** Failure of the last attempt to send the message. */
  error?: WidgetErrorDetail
  /** Number of times that the message has failed. Undefined if it has never failed. */
  failureVersion?: number
}

/** A message that the service has stored. */
export type StoredMessage = WidgetMessage & Required<Pick<WidgetMessage, 'messageId' | 'conversationId' | 'sequence'>>

/** A failure that is reported to the application. It contains no data of the request. */
export interface WidgetErrorDetail {
  code: ErrorCode
  /** True if a retry may succeed, either by the client or by the visitor. */
  recoverable: boolean
}

/** Session data without credentials, which the application may read. */
export type SessionView = Pick<SessionContent, 'sessionId' | 'conversationId' | 'continuity' | 'identity'>

/** The visitor that the host page expects. Only the assertion decides who the visitor is. */
export interface VisitorIdentity {
  /** An assertion with another subject is rejected with `identity_mismatch`. */
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

/** A parsed event, of which not all is validated. An event outside of the log has no id and sequence. */
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

export type FormDefinition = NonNullable<WidgetConfig['forms'][FormKind]>

export type FormField = FormDefinition['fields'][number]

/** Availability of the chat that visitors see: online or away. */
export type Availability = WidgetConfig['availability']

export type Capability = keyof WidgetConfig['capabilities']

/** Whether the visitor may rate the closed conversation, or has rated it. */
export type RatingState = NonNullable<HistoryPage['rating']>

/** Position of the client in the event log. Sent when the stream reconnects and when the grant is renewed. */
export interface StreamPosition {
  lastEventId?: string
  sequence: number
}

/** What is needed to renew or to close a session. */
export type LeftSession = Pick<SessionContent, 'sessionId' | 'renewalToken' | 'accessGrant'>

/** Error codes that this package adds to the service's codes. */
export type ClientErrorCode =
  | 'network_error'
  | 'timeout'
  | 'unexpected_response'
  | 'realtime_terminal_failure'
  | 'outbox_full'
  | 'message_empty'
  | 'message_too_long'
  | 'session_ended'
  | 'not_started'
  | 'site_key_missing'
  | 'site_key_invalid'
  | 'api_base_url_missing'
  | 'api_base_url_invalid'
  | 'identity_unavailable'
  | 'identity_mismatch'
  | 'failure_outdated'
  | 'request_unknown'
  | 'aborted'
  | 'unsupported_security_event'
  | 'unsupported_command'

/** Every code of an error. The name of a terminal event is the code of an error that ends the session. */
export type ErrorCode = ClientErrorCode | SessionEnd | ServiceErrorCode

/** A rejected field: the JSON pointer to the field and the rule that its value violates. */
export type FieldIssue = NonNullable<ErrorEnvelope['issues']>[number]

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
  /** Mail address or telephone number that the visitor left. Set only for `form.submitted`. */
  address?: string
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
  /** State of the closed conversation's rating. Undefined if no rating is asked for. */
  rating?: RatingState
}

export type NavigationOutcome = NavigationAcknowledgement['outcome']

export type ScreenshotConsent = ScreenshotAcknowledgement['consent']

/** Limits of an upload. After `expiresAt`, the service rejects it. */
export type UploadTerms = NonNullable<AcknowledgedScreenshot['upload']>

/** A pending navigation or screenshot request of an agent. */
export interface AgentRequest {
  /** Id of the request: the `commandId` of a navigation or the `requestId` of a screenshot. */
  id: string
  kind: 'navigation' | 'screenshot'
  /** An http or https URL. The client refuses requests with others. */
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
  'agent.assigned': { agent: Agent }
  'agent.unassigned': { agent: Agent }
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
