// Written by `npm run make -- events` from gateway/schemas.

export interface PageContext {
  /** Http or https. Query, fragment and user info are removed. */
  url: string
  /** Cut to 256 code points. */
  title?: string
  /** Cut to its origin. */
  referrer?: string
  viewport?: {
    width: number
    height: number
  }
}

export interface SessionContent {
  sessionId: string
  conversationId: string
  accessGrant: string
  expiresAt: string
  renewAfter: string
  renewableUntil: string
  renewalToken: string
  replay: {
    state: 'ready' | 'reset_required'
    epoch: string
    lastSequence: number
    oldestSequence: number
  }
  continuity: {
    state: 'new' | 'continued' | 'reset'
  }
  identity: {
    state: 'anonymous' | 'verified'
    displayName?: string
  }
}

export interface WidgetConfig {
  contract: string
  contractVersion: string
  publicSiteKey: string
  locale: {
    default: string
    supported: string[]
  }
  appearance: {
    title: string
    greeting: string
    accentColor: string
    position: 'left' | 'right'
    logoUrl?: string
    /** Texts in other languages, by locale tag. */
    translations?: {
      [field: string]: {
        title?: string
        greeting?: string
        openingReplies?: {
          texts: string[]
        }
      }
    }
    openingReplies?: {
      texts: string[]
    }
  }
  capabilities: {
    identity: boolean
    typing: boolean
    pageContext: boolean
    navigation: boolean
    screenshots: boolean
    preChatForm: boolean
    offlineForm: boolean
    messageRetryRoute: boolean
    presence: boolean
    receipts: boolean
    rating: boolean
    stopAnswer: boolean
  }
  forms: {
    preChat?: {
      fields: {
        name: string
        label: string
        type: 'text' | 'email' | 'tel' | 'textarea'
        required: boolean
        maxLength: number
      }[]
    }
    offline?: {
      fields: {
        name: string
        label: string
        type: 'text' | 'email' | 'tel' | 'textarea'
        required: boolean
        maxLength: number
      }[]
    }
  }
  consent: {
    required: boolean
    policyUrl?: string
    policyVersion?: string
  }
  availability: {
    online: boolean
    nextChangeAt?: string
  }
  /** Half of the newest conversations were answered within this time. */
  usualAnswerMinutes?: number
  /** What a client does with an event of an unknown type, by the `category` of the event. */
  compatibility: {
    informational: 'ignore'
    security: 'stop'
    command: 'decline'
  }
  limits: {
    bodyMaxLength: number
    pageContextMaxBytes: number
    historyPageMax: number
    screenshotMaxBytes: number
    outboxMax: number
  }
  realtime: {
    heartbeatSeconds: number
    reconnectMinMs: number
    reconnectMaxMs: number
  }
}

export interface MessageInput {
  clientOperationId: string
  /** CRLF, CR and the soft line ends U+000B, U+000C, U+0085, U+2028 and U+2029 are converted to LF first. */
  body: string
  contentType: 'text'
  /** Locale tag (BCP 47). `de_DE` is read as `de-DE`; an invalid tag is dropped. */
  locale?: string
  /** The page of the visitor: at most 16384 bytes. No value is rejected: control characters and lone surrogates are removed, long text is cut, and an invalid url, referrer or viewport is dropped. */
  pageContext?: PageContext
}

export interface AcceptedMessage {
  clientOperationId: string
  messageId: string
  sessionId: string
  conversationId: string
  sequence: number
  state: 'queued'
  acceptedAt: string
}

export interface MessageAuthor {
  kind: 'visitor' | 'agent' | 'bot' | 'system'
  displayName?: string
  avatarUrl?: string
}

export interface ServiceMessage {
  messageId: string
  clientOperationId?: string
  sessionId?: string
  conversationId: string
  sequence: number
  author: MessageAuthor
  body: string
  contentType: 'text'
  locale?: string
  state: 'queued' | 'sent' | 'delivered' | 'read' | 'failed'
  createdAt: string
  redactedAt?: string
  /** Answers of a bot’s message that the visitor can send with a tap. */
  quickReplies?: string[]
  /** Whether a bot still writes the message. `body` is the text so far. */
  growing?: boolean
  /** How a message that grew has ended before its bot completed it. */
  ended?: 'stopped' | 'interrupted'
}

export interface HistoryPage {
  messages: ServiceMessage[]
  hasMore: boolean
  lastSequence: number
  oldestSequence: number
  /** Whether the visitor may rate the closed conversation, or has rated it. */
  rating?: 'requested' | 'given'
}

export interface Rating {
  score: number
  comment?: string
}

export interface NavigationAcknowledgement {
  outcome: 'accepted' | 'declined' | 'completed' | 'failed' | 'unsupported'
}

export interface ScreenshotAcknowledgement {
  consent: 'granted' | 'denied' | 'unsupported'
}

export interface AcknowledgedScreenshot {
  requestId: string
  state: 'granted' | 'denied' | 'unsupported'
  upload?: {
    maxBytes: number
    contentTypes: string[]
    expiresAt: string
  }
}

export interface UploadedScreenshot {
  requestId: string
  state: 'uploaded'
  byteLength: number
  sha256: string
}

export interface ErrorEnvelope {
  code: string
  retryable: boolean
  terminal: boolean
  retryAfter?: number
  correlationId: string
  issues?: {
    path: string
    rule: string
  }[]
}

export type ServiceErrorCode =
  | 'ValidationFailed'
  | 'WidgetVersionUnsupported'
  | 'CredentialInUrl'
  | 'IdempotencyKeyInvalid'
  | 'IdempotencyKeyMismatch'
  | 'GrantMissing'
  | 'GrantInvalid'
  | 'SessionExpired'
  | 'SessionClosed'
  | 'GrantExpired'
  | 'IdentityAssertionInvalid'
  | 'IdentityAssertionExpired'
  | 'IdentityAssertionReplayed'
  | 'Unauthenticated'
  | 'OriginNotAllowed'
  | 'OriginMismatch'
  | 'SessionRevoked'
  | 'VisitorBanned'
  | 'ConnectionDisabled'
  | 'ConsentRequired'
  | 'VisitorSuppressed'
  | 'PermissionDenied'
  | 'InstallationNotFound'
  | 'CommandNotFound'
  | 'RouteNotAdvertised'
  | 'NotFound'
  | 'LeadNotFound'
  | 'SubscriptionNotFound'
  | 'AttemptNotFound'
  | 'MethodNotAllowed'
  | 'IdempotencyConflict'
  | 'CommandAlreadyResolved'
  | 'OperationInProgress'
  | 'SubscriptionDisabled'
  | 'AttemptNotRetryable'
  | 'BotStopped'
  | 'RatingNotRequested'
  | 'RatingAlreadyGiven'
  | 'LastOwner'
  | 'CommandExpired'
  | 'PayloadTooLarge'
  | 'UnsupportedMediaType'
  | 'RateLimited'
  | 'InternalError'
  | 'ServiceUnavailable'
