import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Credentials } from '../core/grants.ts'
import { unavailable } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { EventHub, StartPoint, Subscription } from './event-hub.ts'
import { encodeHeartbeat, encodeOpening } from './event-stream-encoding.ts'

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

interface Stream {
  res: ServerResponse
  subscription: Subscription
  sessionId: string
  endsAt: number
  beats: Set<Stream>
}

const TICK_MS = 1_000
const MAX_AGE_JITTER = 0.2

export function createEventStreams(options: {
  hub: EventHub
  config: Config
  clock: Clock
  random: () => number
  metrics: GatewayMetrics
}): EventStreams {
  const { hub, config, clock, random, metrics } = options
  const sessions = new Map<string, Set<Stream>>()
  /** Streams by the second at which their heartbeat is due, so that one timer serves all. */
  const wheel = Array.from({ length: config.HEARTBEAT_SECONDS }, () => new Set<Stream>())
  /** Readers that did not read. */
  const slow = new WeakSet<ServerResponse>()
  /** Each refuses a request whose subscription no core has answered yet. */
  const opening = new Set<() => void>()
  let stopped = false
  let seconds = 0
  let stopTicking = () => {}

  function add(res: ServerResponse, sessionId: string, subscription: Subscription): Stream {
    const streams = sessions.get(sessionId) ?? new Set()
    sessions.set(sessionId, streams)
    const [oldest] = streams
    if (oldest !== undefined && streams.size >= config.STREAMS_PER_SESSION) end(oldest, 'replaced')

    const maxAge = config.STREAM_MAX_AGE_SECONDS - config.HEARTBEAT_SECONDS
    const endsAt = clock.now() + maxAge * 1000 * (1 - MAX_AGE_JITTER * random())
    const beats = wheel[seconds % wheel.length]!
    const stream = { res, subscription, sessionId, endsAt, beats }
    streams.add(stream)
    beats.add(stream)
    metrics.streamsOpen.inc()
    return stream
  }

  function remove(stream: Stream, reason: string): void {
    if (!stream.beats.delete(stream)) return
    metrics.streamsOpen.dec()
    metrics.streamEnds.inc({ reason })
    stream.subscription.close()
    const streams = sessions.get(stream.sessionId)
    streams?.delete(stream)
    if (streams?.size === 0) sessions.delete(stream.sessionId)
  }

  function end(stream: Stream, reason: string): void {
    remove(stream, reason)
    stream.res.end()
  }

  function tick(): void {
    seconds++
    for (const stream of wheel[seconds % wheel.length]!) {
      if (clock.now() >= stream.endsAt) end(stream, 'age')
      // Without a core behind it a heartbeat would be a lie.
      else if (stream.subscription.isAttached()) write(stream.res, encodeHeartbeat(stream.subscription.position()))
    }
  }

  function write(res: ServerResponse, bytes: Buffer | string): void {
    if (res.writableEnded || res.destroyed) return
    res.write(bytes)
    if (res.writableLength > config.STREAM_UNSENT_MAX_BYTES) setImmediate(cutIfSlow, res)
  }

  // A turn later, since what was written in one turn goes to the kernel at its end.
  function cutIfSlow(res: ServerResponse): void {
    if (res.writableLength <= config.STREAM_UNSENT_MAX_BYTES) return
    slow.add(res)
    res.destroy()
  }

  return {
    open(reply, { credentials, start }) {
      if (stopped) return Promise.reject(unavailable())
      const res = reply.raw
      return new Promise<void>((resolve, reject) => {
        const refuse = () => {
          subscription.close()
          reject(unavailable())
        }
        let stream: Stream | undefined
        const subscription: Subscription = hub.subscribe({
          credentials,
          start,
          sink: {
            opened(sessionId) {
              opening.delete(refuse)
              reply.hijack()
              reply.headers(STREAM_HEADERS)
              res.writeHead(200, reply.getHeaders() as Record<string, string>)
              res.write(encodeOpening(config.RECONNECT_HINT_MS * (0.75 + random() / 2)))
              stream = add(res, sessionId, subscription)
              resolve()
            },
            write(bytes) {
              metrics.streamEvents.inc()
              write(res, bytes)
            },
            whenDrained(run) {
              if (res.writableNeedDrain) res.once('drain', run)
              else run()
            },
            ended(refusal, endedBy = 'core') {
              opening.delete(refuse)
              if (stream !== undefined) end(stream, endedBy)
              else reject(refusal)
            },
          },
        })
        opening.add(refuse)
        res.once('close', () => {
          opening.delete(refuse)
          if (stream !== undefined) return remove(stream, slow.has(res) ? 'slow' : 'client')
          subscription.close()
          if (res.writableEnded) return
          // The browser left before the core had answered.
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
      for (const refuse of opening) refuse()
      for (const streams of [...sessions.values()]) for (const stream of [...streams]) end(stream, 'shutdown')
    },
    count: () => [...sessions.values()].reduce((sum, streams) => sum + streams.size, 0),
  }
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}
