import type { GatewayError } from '../errors.ts'

/** Position at which a browser's stream begins. */
export interface StartPoint {
  afterSequence?: number
  lastEventId?: string
}

export interface StreamSubscription {
  /** Sequence up to which the reader has every event. */
  readonly position: number
  /** Whether a core currently serves the subscription. */
  readonly attached: boolean
}

/**
 * Receives the events of a subscription: first `opened`, then events, then `ended` once. A refused
 * subscription gets `ended` only.
 */
export interface EventSink<Reader> {
  opened(reader: Reader, sessionId: string, conversationId: string): void
  /** Writes the bytes of `events` events. Default: 1. Readers may share the bytes. */
  write(reader: Reader, bytes: Uint8Array, events?: number): void
  /** Calls `run` once the bytes written so far have left the buffers of the process. */
  whenDrained(reader: Reader, run: () => void): void
  /**
   * @param refusal why the subscription was refused; only before `opened`
   * @param endedBy type of the event, or public code of the error, that ended the stream; only
   *   after `opened`
   */
  ended(reader: Reader, refusal?: GatewayError, endedBy?: string): void
}
