import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Credentials } from '../core/grants.ts'
import { GatewayError, unavailable } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { hasMoreToAnswer } from '../plugins/request-queue.ts'
import type { EventHub, EventSink, StartPoint, Subscription } from './event-hub.ts'
import { encodeHeartbeat, encodeOpening } from './event-stream-encoding.ts'
import { encodeHead, takeSocket } from './stream-socket.ts'

/** The open streams of this gateway, their heartbeats, their bounds and their end. */
export interface EventStreams {
  /**
   * Answers a request with an event stream. Settles once the stream has begun.
   *
   * @throws GatewayError when the subscription is refused; nothing was sent then
   */
  open(reply: FastifyReply, request: { credentials: Credentials; start: StartPoint }): Promise<void>
  start(): void
  /** Ends every stream plainly; clients reconnect and resume. */
  stop(): void
  count(): number
}

/** A browser's stream. There are thousands, so each holds no more than this, and no function of its own. */
export interface Stream {
  /** Whoever waits for it to begin. */
  opening: { reply: FastifyReply; resolve: () => void; reject: (refusal: unknown) => void } | undefined
  subscription: Subscription | undefined
  socket: Socket | undefined
  sessionId: string
  endsAt: number
  /** Those whose heartbeat is due at the same second. */
  beats: Set<Stream> | undefined
}

const TICK_MS = 1_000
const MAX_AGE_JITTER = 0.2

const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

export function createEventStreams(options: {
  hub: EventHub<Stream>
  config: Config
  clock: Clock
  random: () => number
  metrics: GatewayMetrics
}): EventStreams {
  const { hub, config, clock, random, metrics } = options
  const streams = new Map<Socket, Stream>()
  /** The oldest first. */
  const bySession = new Map<string, Stream[]>()
  /** Streams by the second at which their heartbeat is due, so that one timer serves all. */
  const wheel = Array.from({ length: config.HEARTBEAT_SECONDS }, () => new Set<Stream>())
  /** Readers that did not read. */
  const slow = new WeakSet<Socket>()
  /** Those whose subscription no core has answered yet. */
  const opening = new Set<Stream>()
  let stopped = false
  let seconds = 0
  let stopTicking = () => {}

  const sink: EventSink<Stream> = {
    opened(stream, sessionId) {
      const { reply, resolve } = stream.opening!
      if (reply.raw.socket !== null && hasMoreToAnswer(reply.raw.socket)) {
        hub.unsubscribe(stream.subscription!)
        refuse(stream, pipelined())
        return
      }
      stream.opening = undefined
      opening.delete(stream)
      reply.hijack()
      reply.headers(STREAM_HEADERS)
      const socket = takeSocket(reply.raw)
      if (socket === undefined) hub.unsubscribe(stream.subscription!)
      else {
        const hint = encodeOpening(config.RECONNECT_HINT_MS * (0.75 + random() / 2))
        write(socket, Buffer.from(encodeHead(reply.getHeaders(), clock.now()) + hint, 'latin1'))
        add(stream, socket, sessionId)
      }
      resolve()
    },
    write({ socket }, bytes) {
      metrics.streamEvents.inc()
      write(socket!, bytes)
    },
    whenDrained({ socket }, run) {
      if (socket?.writableNeedDrain) socket.once('drain', run)
      else run()
    },
    ended(stream, refusal, endedBy = 'core') {
      if (stream.opening === undefined) end(stream, endedBy)
      else refuse(stream, refusal)
    },
  }

  function refuse(stream: Stream, refusal: unknown): void {
    opening.delete(stream)
    stream.opening?.reject(refusal)
    stream.opening = undefined
  }

  function add(stream: Stream, socket: Socket, sessionId: string): void {
    const ofSession = bySession.get(sessionId) ?? []
    const [oldest] = ofSession
    if (oldest !== undefined && ofSession.length >= config.STREAMS_PER_SESSION) end(oldest, 'replaced')
    ofSession.push(stream)
    bySession.set(sessionId, ofSession)

    const maxAge = config.STREAM_MAX_AGE_SECONDS - config.HEARTBEAT_SECONDS
    stream.endsAt = clock.now() + maxAge * 1000 * (1 - MAX_AGE_JITTER * random())
    stream.sessionId = sessionId
    stream.socket = socket
    stream.beats = wheel[seconds % wheel.length]!.add(stream)
    streams.set(socket, stream)
    metrics.streamsOpen.inc()
    socket.on('close', removeClosed)
  }

  function removeClosed(this: Socket): void {
    const stream = streams.get(this)
    if (stream !== undefined) remove(stream, slow.has(this) ? 'slow' : 'client')
  }

  function remove(stream: Stream, reason: string): void {
    if (!streams.delete(stream.socket!)) return
    metrics.streamsOpen.dec()
    metrics.streamEnds.inc({ reason })
    hub.unsubscribe(stream.subscription!)
    stream.beats?.delete(stream)
    const ofSession = bySession.get(stream.sessionId)
    ofSession?.splice(ofSession.indexOf(stream), 1)
    if (ofSession?.length === 0) bySession.delete(stream.sessionId)
  }

  function end(stream: Stream, reason: string): void {
    remove(stream, reason)
    stream.socket?.end()
  }

  function tick(): void {
    seconds++
    for (const stream of wheel[seconds % wheel.length]!) {
      const { subscription, socket } = stream
      if (clock.now() >= stream.endsAt) end(stream, 'age')
      // Without a core behind it a heartbeat would be a lie.
      else if (subscription?.attached) write(socket!, encodeHeartbeat(subscription.position))
    }
  }

  /** What is written in one turn goes to the kernel together. */
  function write(socket: Socket, bytes: Buffer | string): void {
    if (socket.writableEnded || socket.destroyed) return
    if (socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(uncork, socket)
    }
    socket.write(bytes)
    if (socket.writableLength > config.STREAM_UNSENT_MAX_BYTES) setImmediate(cutIfSlow, socket)
  }

  // A turn later, since what was written in one turn goes to the kernel at its end.
  function cutIfSlow(socket: Socket): void {
    if (socket.writableLength <= config.STREAM_UNSENT_MAX_BYTES) return
    slow.add(socket)
    socket.destroy()
  }

  return {
    open(reply, { credentials, start }) {
      if (stopped) return Promise.reject(unavailable())
      return new Promise<void>((resolve, reject) => {
        const stream: Stream = {
          opening: { reply, resolve, reject },
          subscription: undefined,
          socket: undefined,
          sessionId: '',
          endsAt: 0,
          beats: undefined,
        }
        opening.add(stream)
        const subscription = hub.subscribe({ credentials, start, sink, reader: stream })
        stream.subscription = subscription
        reply.raw.once('close', () => {
          if (stream.opening === undefined) return
          // The browser left before the core had answered.
          stream.opening = undefined
          opening.delete(stream)
          hub.unsubscribe(subscription)
          reply.hijack()
          resolve()
        })
      })
    },
    start() {
      stopTicking = clock.every(TICK_MS, tick)
    },
    stop() {
      stopped = true
      stopTicking()
      for (const stream of opening) {
        hub.unsubscribe(stream.subscription!)
        refuse(stream, unavailable())
      }
      for (const stream of [...streams.values()]) end(stream, 'shutdown')
    },
    count: () => streams.size,
  }
}

/** A stream takes the rest of its connection, so a request behind it could not be answered. */
const pipelined = () =>
  new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'pipelining' }], closesConnection: true })

function uncork(socket: Socket): void {
  socket.uncork()
}
