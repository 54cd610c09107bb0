import { EventEmitter } from 'node:events'
import type { FastifyBaseLogger, FastifyReply } from 'fastify'
import { vi } from 'vitest'
import type { Config } from '../config.ts'
import { type EventSink, hubOf, type Stream } from '../events/event-hub.ts'
import { streamsOf } from '../events/event-streams.ts'
import { Gateway } from '../gateway.ts'
import { createGatewayMetrics } from '../metrics.ts'

const config = {
  HEARTBEAT_SECONDS: 3,
  STREAMS_PER_SESSION: 2,
  STREAM_MAX_AGE_SECONDS: 103,
} as Config
const startTime = Date.UTC(2030, 0, 1)

/** A connection that records what it sends. */
export class TestSocket extends EventEmitter {
  sent: string[] = []
  destroyed = false
  writableEnded = false
  writableCorked = 0
  writableLength = 0
  writableNeedDrain = false
  timeout = 60_000
  setTimeout(ms: number) {
    this.timeout = ms
  }
  pause() {}
  cork() {
    this.writableCorked += 1
  }
  uncork() {
    this.writableCorked -= 1
    this.sent.push('uncork')
  }
  write(bytes: Buffer | string) {
    this.sent.push(String(bytes))
  }
  end() {
    this.writableEnded = true
  }
  destroy() {
    this.destroyed = true
    this.emit('close')
  }
}

/** Creates streams over a fake hub that records its subscriptions, and over a manual clock. */
export function newScene(random = 0.5) {
  const subscribed: { sink: EventSink; reader: Stream; start: object }[] = []
  const unsubscribed: unknown[] = []
  let now = startTime
  let tick = () => {}
  const cancel = vi.fn()
  const every = vi.fn((_ms: number, run: () => void) => {
    tick = run
    return cancel
  })
  const hub = {
    subscribe(request) {
      subscribed.push(request)
      return { position: 7, attached: true, number: subscribed.length }
    },
    unsubscribe: (subscription) => void unsubscribed.push((subscription as { number?: number }).number),
  } as Partial<ReturnType<typeof hubOf>> as ReturnType<typeof hubOf>
  const metrics = createGatewayMetrics()
  const logged: object[] = []
  const logger = { info: (line: object) => void logged.push(line) } as Partial<FastifyBaseLogger> as FastifyBaseLogger
  const clock = { now: () => now, every, after: every }
  const gateway = new Gateway({ config, clock, random: () => random, logger, metrics } as Partial<Gateway> as Gateway)
  hubOf.set(gateway, hub)
  const streams = streamsOf(gateway)

  function ask(socket: TestSocket | null = new TestSocket()) {
    const raw = Object.assign(new EventEmitter(), { socket })
    const headers: Record<string, string> = { vary: 'Origin' }
    const reply = {
      raw,
      hijack: vi.fn(),
      headers: (more: Record<string, string>) => Object.assign(headers, more),
      getHeaders: () => headers,
    }
    const credentials = { accessGrant: 'g', origin: 'o' } as never
    const request = { credentials, start: { afterSequence: 3 }, correlationId: `cor_${subscribed.length + 1}` }
    const outcome = streams.open(reply as unknown as FastifyReply, request).then(
      () => 'begun',
      (error) => error,
    )
    const { sink, reader } = subscribed.at(-1) ?? {}
    return { socket: socket!, raw, reply, outcome, sink: sink!, reader: reader! }
  }

  return {
    ...streams,
    ask,
    subscribed,
    unsubscribed,
    logged,
    every,
    cancel,
    begin(sessionId = 'ses_1') {
      const asked = ask()
      asked.sink.opened(asked.reader, sessionId, 'cnv_1')
      return asked
    },
    advance(seconds: number) {
      for (let second = 0; second < seconds; second += 1) {
        now += 1000
        tick()
      }
    },
    openCount: async () => (await metrics.streamsOpen.get()).values[0]?.value,
    eventCount: async () => (await metrics.streamEvents.get()).values[0]?.value,
    endReasons: async () => (await metrics.streamEnds.get()).values.map(({ labels }) => labels.reason),
  }
}
