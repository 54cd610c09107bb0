import type { FieldIssue } from '../client/feature-types.ts'
import type { DeliveryStatus, RatingState, WidgetMessage } from '../client/types.ts'

/**
 * A message in history pages and events (section 2.3 of the specification). The service's field
 * `state` is the `deliveryStatus` of this package.
 */
export interface ServiceMessage extends Omit<WidgetMessage, 'key' | 'deliveryStatus' | 'error' | 'failureVersion'> {
  messageId: string
  conversationId: string
  sequence: number
  state: DeliveryStatus
}

/** Response body of GET /messages. */
export interface HistoryPage {
  messages: ServiceMessage[]
  hasMore: boolean
  lastSequence: number
  oldestSequence: number
  /** Whether the visitor may rate the closed conversation, or has rated it. */
  rating?: RatingState
}

/** Response body of POST /messages. */
export interface AcceptedMessage extends Pick<ServiceMessage, 'messageId' | 'conversationId' | 'sequence' | 'state'> {
  clientOperationId: string
  sessionId: string
  acceptedAt: string
}

/** Response body of every error (section 2.5 of the specification). */
export interface ErrorEnvelope {
  code: string
  retryable: boolean
  terminal: boolean
  /** Minimum delay before a retry, in seconds. */
  retryAfter?: number
  correlationId: string
  /** Fields that the service rejected. Set only for the code `ValidationFailed`. */
  issues?: FieldIssue[]
}
