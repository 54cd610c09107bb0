import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import type { GatewayError } from '../errors.ts'

export interface StartPoint {
  afterSequence?: number
  lastEventId?: string
}

export interface StreamSubscription {
  readonly position: number
  readonly attached: boolean
}

/** A browser's stream. There are thousands, so it holds little data and no closures. */
export interface Stream {
  /** The pending request; undefined once the stream has begun. */
  opening: { reply: FastifyReply; resolve: () => void; reject: (refusal: unknown) => void } | undefined
  subscription: StreamSubscription | undefined
  socket: Socket | undefined
  sessionId: string
  conversationId: string
  correlationId: string
  endsAt: number
  /** The set of streams whose heartbeat is due in the same second. */
  wheelSlot: Set<Stream> | undefined
}

/** Gets `opened` first, then events, then `ended` once. A refused subscription gets `ended` only. */
export interface EventSink {
  opened(reader: Stream, sessionId: string, conversationId: string): void
  /** Writes the bytes of `events` events (default: 1), which readers may share. */
  write(reader: Stream, bytes: Uint8Array, events?: number): void
  /** Calls `run` once the bytes written so far have left the buffers of the process. */
  whenDrained(reader: Stream, run: () => void): void
  /**
   * `refusal` says why the subscription was refused, before `opened`. `endedBy` is the type of the event,
   * or the code of the error, that ended the stream after it.
   */
  ended(reader: Stream, refusal?: GatewayError, endedBy?: string): void
}
