import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
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

/** A browser's stream. There are thousands, so a stream holds little data and no closures. */
export interface Stream {
  /** The pending request; undefined once the stream has begun. */
  opening: { reply: FastifyReply; resolve: () => void; reject: (refusal: unknown) => void } | undefined
  subscription: StreamSubscription | undefined
  socket: Socket | undefined
  sessionId: string
  conversationId: string
  /** Correlation id of the request that opened the stream. */
  correlationId: string
  endsAt: number
  /** The set of streams whose heartbeat is due in the same second. */
  wheelSlot: Set<Stream> | undefined
}

/**
 * Receives the events of a subscription: first `opened`, then events, then `ended` once. A refused
 * subscription gets `ended` only.
 */
export interface EventSink {
  opened(reader: Stream, sessionId: string, conversationId: string): void
  /** Writes the bytes of `events` events. Default: 1. Readers may share the bytes. */
  write(reader: Stream, bytes: Uint8Array, events?: number): void
  /** Calls `run` once the bytes written so far have left the buffers of the process. */
  whenDrained(reader: Stream, run: () => void): void
  /**
   * @param refusal why the subscription was refused; only before `opened`
   * @param endedBy type of the event, or public code of the error, that ended the stream; only
   *   after `opened`
   */
  ended(reader: Stream, refusal?: GatewayError, endedBy?: string): void
}
