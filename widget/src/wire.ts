import type { DeliveryStatus, FieldIssue, WidgetMessage } from './types.ts'

/** A message in the history and in events (section 2.3 of the specification). The package calls its state `deliveryStatus`. */
export interface ServiceMessage extends Omit<WidgetMessage, 'key' | 'deliveryStatus' | 'error'> {
  messageId: string
  conversationId: string
  sequence: number
  state: DeliveryStatus
}

/** The answer of GET /messages. */
export interface HistoryPage {
  messages: ServiceMessage[]
  hasMore: boolean
  lastSequence: number
  oldestSequence: number
}

/** The answer of POST /messages. */
export interface AcceptedMessage extends Pick<ServiceMessage, 'messageId' | 'conversationId' | 'sequence' | 'state'> {
  clientOperationId: string
  sessionId: string
  acceptedAt: string
}

/** The body of every failure (section 2.5 of the specification). */
export interface ErrorEnvelope {
  code: string
  retryable: boolean
  terminal: boolean
  /** Seconds. */
  retryAfter?: number
  correlationId: string
  /** Of `ValidationFailed`. */
  issues?: FieldIssue[]
}
