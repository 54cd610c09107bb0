import type { FastifyBaseLogger } from 'fastify'
import type { ErrorInfo } from '#proto/error/v1/error_pb.js'
import type { Event, Frame, Opened } from '#proto/messaging/v1/messaging_pb.js'
import type { Core as PooledCore } from '../../core-client/core-pool.ts'
import { readAtScrape } from '../../platform/observability/metrics.ts'
import type { Clock } from '../clock.ts'
import type { Core } from '../core/core.ts'
import type { Credentials } from '../core/grants.ts'
import { errorFromInfo, type GatewayError, unavailable } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { createEventLink, type EventLink } from './event-link.ts'
import { encodeEvent } from './event-stream-encoding.ts'

/** Where a browser's stream begins. */
export interface StartPoint {
  afterSequence?: number
  lastEventId?: string
}

/** What a subscription tells its reader. After `opened` come events, at the end `ended`, once. */
export interface EventSink<Reader> {
  opened(reader: Reader, sessionId: string): void
  /** Bytes of one event, the same buffer for every reader. */
  write(reader: Reader, bytes: Buffer): void
  /** Calls back when what was written so far has left the process's buffers. */
  whenDrained(reader: Reader, run: () => void): void
  /** With the error of a refusal before `opened`; after it with the event that ended it, where it was one. */
  ended(reader: Reader, refusal?: GatewayError, endedBy?: string): void
}

export interface Subscription {
  /** Sequence up to which the reader has everything. */
  readonly position: number
  /** Whether a core is feeding it now. */
  readonly attached: boolean
}

/** Every event subscription of this gateway, over one link per core. */
export interface EventHub<Reader> {
  subscribe(request: {
    credentials: Credentials
    start: StartPoint
    /** The same for all of them: with thousands of readers, functions of their own would be most of the memory. */
    sink: EventSink<Reader>
    reader: Reader
  }): Subscription
  unsubscribe(subscription: Subscription): void
  start(): void
  stop(): void
}

interface Entry<Reader> extends Subscription {
  id: number
  credentials: Credentials
  /** Undefined once it is open. */
  start: StartPoint | undefined
  sink: EventSink<Reader>
  reader: Reader
  link: Link<Reader> | undefined
  opened: boolean
  attached: boolean
  epoch: string
  position: number
  /** When it was left without an open subscription. */
  since: number
  /** The event that ends its stream, once that has come. */
  endedBy?: string
}

interface Link<Reader> {
  link: EventLink
  entries: Map<number, Entry<Reader>>
}

const TICK_MS = 1_000
const OPEN_DEADLINE_MS = 10_000

/** Events that end a stream are passed on whatever their sequence: they are never a repetition. */
const ENDING_EVENTS = new Set([
  'replay.reset.required',
  'session.closed',
  'session.expired',
  'session.revoked',
  'visitor.banned',
  'connection.disabled',
])

/**
 * Keeps browsers' streams whole over the loss of a core. A subscription whose link breaks is taken up on another core,
 * or on the same one when it is back, from the reader's position; what the reader has already is dropped.
 */
export function createEventHub<Reader>(options: {
  core: Core
  clock: Clock
  random: () => number
  logger: FastifyBaseLogger
  metrics: GatewayMetrics
  /** How long an open subscription waits for a core. */
  orphanMs: number
}): EventHub<Reader> {
  const { core, clock, logger } = options
  const links = new Map<PooledCore, Link<Reader>>()
  readAtScrape([options.metrics.linksUp], () => [
    [...links.values()].filter(({ link }) => link.state() === 'up').length,
  ])
  /** Those that no core is feeding. */
  const pending = new Set<Entry<Reader>>()
  let lastId = 0
  let stopTicking = () => {}

  function follow(pooled: PooledCore): void {
    const entries = new Map<number, Entry<Reader>>()
    const link = createEventLink({
      watcher: core.watcherOf(pooled),
      clock,
      random: options.random,
      logger: logger.child({ core: pooled.url }),
      onUp() {
        core.pool.revive(pooled)
        for (const entry of [...pending]) if (entry.link === undefined) attach(entry)
      },
      onDown: () => release(entries),
      onFrame: (frame) => receive(entries, frame),
    })
    links.set(pooled, { link, entries })
    link.start()
  }

  /** Its subscriptions go to the other cores before it is told that they have gone. */
  function leave(pooled: PooledCore): void {
    const left = links.get(pooled)
    links.delete(pooled)
    if (left === undefined) return
    release(left.entries)
    left.link.stop()
  }

  /** Gives the entry to the core with the fewest; without one it waits. False when there is nothing to wait for. */
  function attach(entry: Entry<Reader>): boolean {
    const up = [...links.values()].filter(({ link }) => link.state() === 'up')
    if (up.length === 0) return [...links.values()].some(({ link }) => link.state() === 'connecting')
    const target = up.reduce((least, link) => (link.entries.size < least.entries.size ? link : least))
    lastId = (lastId + 1) >>> 0
    entry.id = lastId
    entry.link = target
    target.entries.set(entry.id, entry)
    const start = entry.opened
      ? { lastEventId: `${entry.epoch}-${entry.position}` }
      : { afterSequence: entry.start?.afterSequence, lastEventId: entry.start?.lastEventId }
    target.link.send({
      case: 'subscribe',
      value: { subscriptionId: entry.id, credentials: entry.credentials, ...start, resumed: entry.opened },
    })
    return true
  }

  function detach(entry: Entry<Reader>): void {
    entry.link?.entries.delete(entry.id)
    entry.link = undefined
    entry.attached = false
  }

  function finish(entry: Entry<Reader>, refusal?: GatewayError): void {
    detach(entry)
    pending.delete(entry)
    entry.sink.ended(entry.reader, entry.opened ? undefined : refusal, entry.endedBy)
  }

  function wait(entry: Entry<Reader>): void {
    detach(entry)
    if (!pending.has(entry)) entry.since = clock.now()
    pending.add(entry)
  }

  function release(entries: Map<number, Entry<Reader>>): void {
    for (const entry of [...entries.values()]) {
      wait(entry)
      if (!attach(entry) && !entry.opened) finish(entry, unavailable())
    }
    for (const entry of [...pending]) {
      if (!entry.opened && entry.link === undefined && !attach(entry)) finish(entry, unavailable())
    }
  }

  function receive(entries: Map<number, Entry<Reader>>, { frame }: Frame): void {
    switch (frame.case) {
      case 'opened': {
        const entry = entries.get(frame.value.subscriptionId)
        if (entry !== undefined) open(entry, frame.value)
        return
      }
      case 'event':
        passOn(entries, frame.value)
        return
      case 'advanced':
        for (const id of frame.value.subscriptionIds) {
          const entry = entries.get(id)
          if (entry !== undefined) entry.position = Math.max(entry.position, frame.value.sequence)
        }
        return
      case 'paused': {
        const { subscriptionId } = frame.value
        const entry = entries.get(subscriptionId)
        entry?.sink.whenDrained(entry.reader, () => {
          // The subscription may have moved to another core meanwhile, under another id.
          if (entry.id === subscriptionId) entry.link?.link.send({ case: 'continue', value: { subscriptionId } })
        })
        return
      }
      case 'closed': {
        const entry = entries.get(frame.value.subscriptionId)
        if (entry !== undefined) closed(entry, frame.value.error)
      }
    }
  }

  function open(entry: Entry<Reader>, { sessionId, epoch, sequence }: Opened): void {
    pending.delete(entry)
    entry.attached = true
    entry.epoch = epoch
    // Taken up again: the reader's own position holds.
    if (entry.opened) return
    entry.opened = true
    entry.start = undefined
    entry.position = sequence
    entry.sink.opened(entry.reader, sessionId)
  }

  function passOn(entries: Map<number, Entry<Reader>>, event: Event): void {
    const bytes = encodeEvent(event)
    if (bytes === undefined) logger.error({ sequence: event.sequence }, 'event with an unsafe id or name left out')
    const ending = ENDING_EVENTS.has(event.type)
    for (const id of event.subscriptionIds) {
      const entry = entries.get(id)
      if (entry === undefined || (!ending && event.sequence <= entry.position)) continue
      entry.position = Math.max(entry.position, event.sequence)
      if (ending) entry.endedBy = event.type
      if (bytes !== undefined) entry.sink.write(entry.reader, bytes)
    }
  }

  function closed(entry: Entry<Reader>, error: ErrorInfo | undefined): void {
    // A core in trouble is no reason to break the stream of a browser: the next tick tries again.
    if (entry.opened && !entry.attached && error?.retryable) wait(entry)
    else finish(entry, error === undefined ? unavailable() : errorFromInfo(error))
  }

  function tick(): void {
    for (const entry of [...pending]) {
      const waited = clock.now() - entry.since
      if (waited >= (entry.opened ? options.orphanMs : OPEN_DEADLINE_MS)) {
        tellUnsubscribed(entry)
        finish(entry, unavailable())
      } else if (entry.link === undefined) attach(entry)
    }
  }

  function tellUnsubscribed(entry: Entry<Reader>): void {
    entry.link?.link.send({ case: 'unsubscribe', value: { subscriptionId: entry.id } })
  }

  return {
    subscribe(request) {
      const state = { id: 0, link: undefined, opened: false, attached: false, epoch: '', position: 0, since: 0 }
      const entry: Entry<Reader> = { ...state, ...request }
      wait(entry)
      if (!attach(entry)) finish(entry, unavailable())
      return entry
    },
    unsubscribe(subscription) {
      const entry = subscription as Entry<Reader>
      tellUnsubscribed(entry)
      detach(entry)
      pending.delete(entry)
    },
    start() {
      core.pool.follow({ added: follow, removed: leave })
      stopTicking = clock.every(TICK_MS, tick)
    },
    stop() {
      stopTicking()
      for (const { link } of links.values()) link.stop()
    },
  }
}
