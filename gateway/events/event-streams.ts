import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { hasMoreToAnswer } from '../../platform/http/request-queue.ts'
import type { Credentials } from '../core-calls/grant-cache.ts'
import { invalid, unavailable } from '../errors.ts'
import { perGateway } from '../gateway.ts'
import { encodeHead, takeSocket } from '../http/stream-socket.ts'
import { type EventSink, hubOf, type StartPoint, type Stream } from './event-hub.ts'

const TICK_MS = 1_000
const MAX_AGE_JITTER = 0.2
/**
 * The reconnect time that a stream sends as `retry` is a quarter of this or more, at random, so that the
 * clients of a gateway that dies do not return at once.
 */
const RECONNECT_HINT_MS = 2_000
/** Unsent data above which a slow reader is disconnected. */
export const UNSENT_MAX_BYTES = 262_144

const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** The open event streams of this gateway. Sends heartbeats, enforces limits and ends streams. */
export const streamsOf = perGateway((gateway) => {
  const { config, clock, random, logger, metrics } = gateway
  const hub = hubOf(gateway)
  const streams = new Map<Socket, Stream>()
  const bySession = new Map<string, Stream[]>()
  /** Streams by the second of their heartbeat. All share one timer. */
  const wheel = Array.from({ length: config.HEARTBEAT_SECONDS }, () => new Set<Stream>())
  /** Sockets that were destroyed because their reader was too slow. */
  const slow = new WeakSet<Socket>()
  const opening = new Set<Stream>()
  let stopped = false
  let seconds = 0
  let stopTicking = () => {}

  const sink: EventSink = {
    opened(stream, sessionId, conversationId) {
      const { reply, resolve } = stream.opening!
      if (reply.raw.socket !== null && hasMoreToAnswer(reply.raw.socket)) {
        hub.unsubscribe(stream.subscription!)
        // A stream keeps its connection for itself, so the requests behind it would get no answer.
        refuse(stream, invalid('', 'pipelining', { closesConnection: true }))
        return
      }
      stream.opening = undefined
      opening.delete(stream)
      reply.hijack()
      reply.headers(STREAM_HEADERS)
      const socket = takeSocket(reply.raw)
      if (socket === undefined) hub.unsubscribe(stream.subscription!)
      else {
        const hint = encodeOpening(RECONNECT_HINT_MS * (0.25 + 0.75 * random()))
        write(socket, Buffer.from(encodeHead(reply.getHeaders(), clock.now()) + hint, 'latin1'))
        stream.conversationId = conversationId
        add(stream, socket, sessionId)
      }
      resolve()
    },
    write({ socket }, bytes, events = 1) {
      metrics.streamEvents.inc(events)
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

  function refuse(stream: Stream, refusal: unknown) {
    opening.delete(stream)
    stream.opening?.reject(refusal)
    stream.opening = undefined
  }

  function add(stream: Stream, socket: Socket, sessionId: string) {
    const ofSession = bySession.get(sessionId) ?? []
    const [oldest] = ofSession
    if (oldest !== undefined && ofSession.length >= config.STREAMS_PER_SESSION) end(oldest, 'replaced')
    ofSession.push(stream)
    bySession.set(sessionId, ofSession)

    // Streams end with a heartbeat, so up to one interval later than `endsAt`.
    const earliest = config.STREAM_MAX_AGE_SECONDS * (1 - MAX_AGE_JITTER)
    const latest = Math.max(earliest, config.STREAM_MAX_AGE_SECONDS - config.HEARTBEAT_SECONDS)
    stream.endsAt = clock.now() + 1000 * (latest - (latest - earliest) * random())
    stream.sessionId = sessionId
    stream.socket = socket
    stream.wheelSlot = wheel[seconds % wheel.length]!.add(stream)
    streams.set(socket, stream)
    metrics.streamsOpen.inc()
    socket.on('close', removeClosed)
  }

  function removeClosed(this: Socket) {
    const stream = streams.get(this)
    if (stream !== undefined) remove(stream, slow.has(this) ? 'slow' : 'client')
  }

  function remove(stream: Stream, reason: string) {
    if (!streams.delete(stream.socket!)) return
    metrics.streamsOpen.dec()
    metrics.streamEnds.inc({ reason })
    const { correlationId, sessionId, conversationId } = stream
    logger.info({ correlationId, sessionId, conversationId, reason }, 'event stream ended')
    hub.unsubscribe(stream.subscription!)
    stream.wheelSlot?.delete(stream)
    const ofSession = bySession.get(stream.sessionId)
    ofSession?.splice(ofSession.indexOf(stream), 1)
    if (ofSession?.length === 0) bySession.delete(stream.sessionId)
  }

  function end(stream: Stream, reason: string) {
    remove(stream, reason)
    stream.socket?.end()
  }

  function tick() {
    seconds++
    for (const stream of wheel[seconds % wheel.length]!) {
      const { subscription, socket } = stream
      if (clock.now() >= stream.endsAt) end(stream, 'age')
      // A heartbeat says that the position is current, which needs a core.
      else if (subscription?.attached) write(socket!, encodeHeartbeat(subscription.position))
    }
  }

  /** Sends all writes of one turn of the event loop together. */
  function write(socket: Socket, bytes: Uint8Array | string) {
    if (socket.writableEnded || socket.destroyed) return
    if (socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(uncork, socket)
    }
    socket.write(bytes)
    if (socket.writableLength > UNSENT_MAX_BYTES) setImmediate(destroyIfSlow, socket)
  }

  function destroyIfSlow(socket: Socket) {
    if (socket.writableLength <= UNSENT_MAX_BYTES) return
    slow.add(socket)
    socket.destroy()
  }

  return {
    /** Resolves when the stream has begun. Rejects with a `GatewayError`, before any byte, if it is refused. */
    open(
      reply: FastifyReply,
      { credentials, start, correlationId }: { credentials: Credentials; start: StartPoint; correlationId: string },
    ) {
      if (stopped) return Promise.reject(unavailable())
      return new Promise<void>((resolve, reject) => {
        const stream: Stream = {
          opening: { reply, resolve, reject },
          subscription: undefined,
          socket: undefined,
          sessionId: '',
          conversationId: '',
          correlationId,
          endsAt: 0,
          wheelSlot: undefined,
        }
        opening.add(stream)
        const subscription = hub.subscribe({ credentials, start, sink, reader: stream })
        stream.subscription = subscription
        reply.raw.once('close', () => {
          if (stream.opening === undefined) return
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
})

function uncork(socket: Socket) {
  socket.uncork()
}

/** Adds a comment, because some proxies forward the headers only with the first bytes of the body. */
export const encodeOpening = (retryMs: number) => `retry: ${Math.round(retryMs)}\n\n: open\n\n`

export const encodeHeartbeat = (position: number) => `: hb ${position}\n\n`
