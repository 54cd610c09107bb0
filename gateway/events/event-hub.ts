import type { FastifyBaseLogger } from 'fastify'
import type { ErrorInfo } from '#proto/error/v1/error_pb.js'
import type { Opened } from '#proto/messaging/v1/messaging_pb.js'
import type { CoreNode } from '../../core-client/core-pool.ts'
import { readAtScrape } from '../../platform/observability/metrics.ts'
import type { Clock } from '../clock.ts'
import type { CoreClients } from '../core-calls/core-clients.ts'
import type { Credentials } from '../core-calls/grant-cache.ts'
import { errorFromInfo, type GatewayError, unavailable } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { forwardAvailability } from './availability.ts'
import { createFrameReader, type Entry, type Link } from './event-frames.ts'
import { createEventLink } from './event-link.ts'
import type { EventSink, StartPoint, StreamSubscription } from './event-sink.ts'
import { PRESENCE_FLUSH_MS, type PresenceRelay } from './presence-relay.ts'
import { planMove } from './stream-balance.ts'

/** All event subscriptions of this gateway, multiplexed over one link per core. */
export interface EventHub<Reader> {
  subscribe(request: {
    credentials: Credentials
    start: StartPoint
    /**
     * One sink serves all readers. There are thousands of readers, so closures per reader would use
     * most of the memory.
     */
    sink: EventSink<Reader>
    reader: Reader
  }): StreamSubscription
  unsubscribe(subscription: StreamSubscription): void
  start(): void
  stop(): void
}

const TICK_MS = 1_000
const OPEN_DEADLINE_MS = 10_000
/** How long a stream stays open while no core is connected. */
const ORPHAN_MS = 30_000
/** How long no stream moves after a core refused one. */
const BALANCE_PAUSE_MS = 30_000

/**
 * Keeps the streams of browsers open when a core is lost. If a link breaks, its subscriptions
 * resume on another core, or on the same core after it returns. They resume at the reader's
 * position, and duplicate events are dropped. Subscriptions also move, a few a second, from a core
 * with many to one with few.
 */
export function createEventHub<Reader>(options: {
  core: CoreClients
  presence: PresenceRelay
  clock: Clock
  random: () => number
  logger: FastifyBaseLogger
  metrics: GatewayMetrics
}): EventHub<Reader> {
  const { core, presence, clock, logger } = options
  const links = new Map<CoreNode, Link<Reader>>()
  const linksUp = () => [...links.values()].filter(({ link }) => link.state() === 'up')
  readAtScrape([options.metrics.linksUp], () => [linksUp().length])
  /** Subscriptions without a core. */
  const pending = new Set<Entry<Reader>>()
  let lastId = 0
  let balanceAfter = 0
  const stopTimers: (() => void)[] = []
  const receive = createFrameReader<Reader>({ logger, onOpened, onClosed })

  function addNode(node: CoreNode): void {
    const entries = new Map<number, Entry<Reader>>()
    const link = createEventLink({
      watcher: core.watcherOf(node),
      clock,
      tokenFault: core.tokenFault,
      random: options.random,
      logger: logger.child({ core: node.url }),
      onUp() {
        core.pool.markAlive(node)
        presence.greet(link)
        for (const entry of [...pending]) if (entry.link === undefined) attach(entry)
      },
      onDown: () => release(entries),
      onFrame: (frame) => receive(entries, frame),
    })
    links.set(node, { link, entries })
    link.start()
  }

  /** Moves the subscriptions of a removed core to other cores, then stops its link. */
  function removeNode(node: CoreNode): void {
    const removed = links.get(node)
    links.delete(node)
    if (removed === undefined) return
    release(removed.entries)
    removed.link.stop()
  }

  /**
   * Subscribes the entry on the core that has the fewest subscriptions. A core that refused the entry
   * is used only if no other core is up. If no core is up, the entry waits for one. Returns false if
   * no core is up and no core is connecting.
   */
  function attach(entry: Entry<Reader>): boolean {
    const up = linksUp()
    if (up.length === 0) return [...links.values()].some(({ link }) => link.state() === 'connecting')
    const others = up.filter((link) => link !== entry.refusedBy)
    const target = (others.length > 0 ? others : up).reduce((least, link) =>
      link.entries.size < least.entries.size ? link : least,
    )
    lastId = (lastId + 1) >>> 0
    entry.id = lastId
    entry.link = target
    target.entries.set(entry.id, entry)
    const start = entry.opened
      ? { lastEventId: `${entry.epoch}-${entry.position}` }
      : { afterSequence: entry.start?.afterSequence, lastEventId: entry.start?.lastEventId }
    target.link.send({
      case: 'subscribe',
      value: {
        subscriptionId: entry.id,
        credentials: entry.credentials,
        ...start,
        resumed: entry.opened,
      },
    })
    return true
  }

  function detach(entry: Entry<Reader>): void {
    entry.link?.entries.delete(entry.id)
    entry.link = undefined
    entry.attached = false
  }

  /** Forgets a subscription that has ended. */
  function drop(entry: Entry<Reader>): void {
    detach(entry)
    pending.delete(entry)
    presence.ended(entry)
  }

  /** @param refusal why a core ended the subscription; undefined if no core serves it */
  function finish(entry: Entry<Reader>, refusal?: GatewayError): void {
    drop(entry)
    if (entry.opened) entry.sink.ended(entry.reader, undefined, entry.endedBy ?? refusal?.code)
    else entry.sink.ended(entry.reader, refusal ?? unavailable())
  }

  function wait(entry: Entry<Reader>): void {
    detach(entry)
    if (!pending.has(entry)) entry.waitingSince = clock.now()
    pending.add(entry)
  }

  function release(entries: Map<number, Entry<Reader>>): void {
    for (const entry of [...entries.values()]) {
      wait(entry)
      if (!attach(entry) && !entry.opened) finish(entry)
    }
    for (const entry of [...pending]) {
      if (!entry.opened && entry.link === undefined && !attach(entry)) finish(entry)
    }
  }

  function onOpened(entry: Entry<Reader>, opened: Opened): void {
    const { sessionId, conversationId, epoch, sequence, availability } = opened
    pending.delete(entry)
    entry.attached = true
    entry.refusedBy = undefined
    entry.epoch = epoch
    presence.opened(entry, opened)
    if (entry.opened && availability !== '') forwardAvailability([entry], availability, new Date(clock.now()))
    // A resumed subscription keeps the position of its reader.
    if (entry.opened) return
    entry.availability = availability
    entry.opened = true
    entry.start = undefined
    entry.position = sequence
    entry.sink.opened(entry.reader, sessionId, conversationId)
  }

  function onClosed(entry: Entry<Reader>, error: ErrorInfo | undefined): void {
    // A retryable error of a core must not end the stream. The next `tick` subscribes again.
    if (entry.opened && !entry.attached && error?.retryable) {
      entry.refusedBy = entry.link
      balanceAfter = clock.now() + BALANCE_PAUSE_MS
      wait(entry)
    } else finish(entry, error && errorFromInfo(error))
  }

  function tick(): void {
    for (const entry of [...pending]) {
      const waited = clock.now() - entry.waitingSince
      if (waited >= (entry.opened ? ORPHAN_MS : OPEN_DEADLINE_MS)) {
        sendUnsubscribe(entry)
        finish(entry)
      } else if (entry.link === undefined) attach(entry)
    }
    balance()
  }

  /** Moves a few subscriptions, unless earlier ones have not opened again or a core refused one. */
  function balance(): void {
    if (clock.now() < balanceAfter || [...pending].some(({ opened }) => opened)) return
    const up = linksUp()
    const move = planMove(up.map(({ entries }) => entries.size))
    if (move === undefined) return
    const movable = [...up[move.from]!.entries.values()].filter(({ attached }) => attached)
    for (const entry of movable.slice(0, move.count)) {
      sendUnsubscribe(entry)
      wait(entry)
      attach(entry)
    }
  }

  function sendUnsubscribe(entry: Entry<Reader>): void {
    entry.link?.link.send({ case: 'unsubscribe', value: { subscriptionId: entry.id } })
  }

  return {
    subscribe(request) {
      const state = { id: 0, link: undefined, opened: false, attached: false, epoch: '', position: 0, waitingSince: 0 }
      const entry: Entry<Reader> = { ...state, availability: '', ...request }
      wait(entry)
      if (!attach(entry)) finish(entry)
      return entry
    },
    unsubscribe(subscription) {
      const entry = subscription as Entry<Reader>
      sendUnsubscribe(entry)
      drop(entry)
    },
    start() {
      core.pool.follow({ added: addNode, removed: removeNode })
      const flush = () => presence.flush([...links.values()].map(({ link }) => link))
      stopTimers.push(clock.every(TICK_MS, tick), clock.every(PRESENCE_FLUSH_MS, flush))
    },
    stop() {
      for (const stopTimer of stopTimers) stopTimer()
      for (const { link } of links.values()) link.stop()
    },
  }
}
