import type { Socket } from 'node:net'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { FastifyReply } from 'fastify'
import type { ErrorInfo } from '#proto/error/v1/error_pb.js'
import type { Event, Frame, Opened } from '#proto/messaging/v1/messaging_pb.js'
import { eventCategories } from '../../contract/event-categories.ts'
import { encodeStreamedEvent } from '../../contract/event-stream.ts'
import type { CoreNode } from '../../core-client/core-pool.ts'
import { readAtScrape } from '../../platform/observability/metrics.ts'
import type { Credentials } from '../core-calls/grant-cache.ts'
import { errorFromInfo, type GatewayError, unavailable } from '../errors.ts'
import { perGateway } from '../gateway.ts'
import { eventDefinitions } from '../schemas/events.ts'
import { createEventLink, type EventLink } from './event-link.ts'
import { PRESENCE_FLUSH_MS, presenceOf } from './presence-relay.ts'

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

/** A sink gets `opened`, then events, then `ended` once. A refused subscription gets `ended` only. */
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

interface Entry extends StreamSubscription {
  id: number
  credentials: Credentials
  /** Where the stream begins; undefined once the subscription has opened. */
  start: StartPoint | undefined
  sink: EventSink
  reader: Stream
  link: Link | undefined
  refusedBy?: Link
  opened: boolean
  attached: boolean
  epoch: string
  position: number
  /** The availability that was last sent to the reader, or known when its stream began. */
  availability: string
  waitingSince: number
  /** Type of the event, or public code of the error, that ended the stream. */
  endedBy?: string
}

type Entries = Map<number, Entry>

interface Link {
  link: EventLink
  entries: Entries
}

/** Events that end a stream. A core may send one with a sequence that the reader has passed. */
const ENDING_EVENTS: ReadonlySet<string> = new Set(
  Object.entries(eventDefinitions).flatMap(([name, { terminal }]) => (terminal === 'never' ? [] : [name])),
)

const TICK_MS = 1_000
const OPEN_DEADLINE_MS = 10_000
/** How long a stream stays open while no core is connected. */
const ORPHAN_MS = 30_000
/** How long no stream moves after a core refused one. */
const BALANCE_PAUSE_MS = 30_000

/**
 * All event subscriptions of this gateway, over one link per core. If a link breaks, they resume on another
 * core, or on the same after it returns, at the reader's position; duplicates are dropped. They also move,
 * a few a second, from a core with many to one with few.
 */
export const hubOf = perGateway((gateway) => {
  const { cores, clock, logger } = gateway
  const presence = presenceOf(gateway)
  const links = new Map<CoreNode, Link>()
  const linksUp = () => [...links.values()].filter(({ link }) => link.state() === 'up')
  readAtScrape([gateway.metrics.linksUp], () => [linksUp().length])
  const pending = new Set<Entry>()
  let lastId = 0
  let balanceAfter = 0
  const stopTimers: (() => void)[] = []

  function addNode(node: CoreNode) {
    const entries = new Map<number, Entry>()
    const link = createEventLink(gateway, node, {
      up() {
        cores.markAlive(node)
        presence.greet(link)
        for (const entry of [...pending]) if (entry.link === undefined) attach(entry)
      },
      down: () => release(entries),
      frame: (frame) => receive(entries, frame),
    })
    links.set(node, { link, entries })
    link.start()
  }

  function removeNode(node: CoreNode) {
    const removed = links.get(node)
    links.delete(node)
    if (removed === undefined) return
    release(removed.entries)
    removed.link.stop()
  }

  /**
   * Subscribes on the core with the fewest subscriptions. Uses a core that refused the entry only if no other
   * core is up. If none is up, the entry waits. Returns false if no core is up or connecting.
   */
  function attach(entry: Entry) {
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
    const start = entry.opened ? { lastEventId: `${entry.epoch}-${entry.position}` } : entry.start
    const { credentials, opened: resumed } = entry
    target.link.send({ case: 'subscribe', value: { subscriptionId: entry.id, credentials, ...start, resumed } })
    return true
  }

  function detach(entry: Entry) {
    entry.link?.entries.delete(entry.id)
    entry.link = undefined
    entry.attached = false
  }

  function drop(entry: Entry) {
    detach(entry)
    pending.delete(entry)
    presence.ended(entry)
  }

  /** `refusal` says why a core ended the subscription; undefined if no core serves it. */
  function finish(entry: Entry, refusal?: GatewayError) {
    drop(entry)
    if (entry.opened) entry.sink.ended(entry.reader, undefined, entry.endedBy ?? refusal?.code)
    else entry.sink.ended(entry.reader, refusal ?? unavailable())
  }

  function wait(entry: Entry) {
    detach(entry)
    if (!pending.has(entry)) entry.waitingSince = clock.now()
    pending.add(entry)
  }

  function release(entries: Entries) {
    for (const entry of [...entries.values()]) {
      wait(entry)
      if (!attach(entry) && !entry.opened) finish(entry)
    }
    for (const entry of [...pending]) {
      if (!entry.opened && entry.link === undefined && !attach(entry)) finish(entry)
    }
  }

  const present = (entries: Entries, ids: number[]) => ids.flatMap((id) => entries.get(id) ?? [])

  function receive(entries: Entries, { frame }: Frame) {
    switch (frame.case) {
      case 'opened': {
        const entry = entries.get(frame.value.subscriptionId)
        if (entry !== undefined) onOpened(entry, frame.value)
        return
      }
      case 'event':
        forwardEvent(entries, frame.value)
        return
      case 'replayed': {
        const { subscriptionId, sequence, events, text } = frame.value
        const entry = entries.get(subscriptionId)
        if (entry === undefined || sequence <= entry.position) return
        entry.position = sequence
        entry.sink.write(entry.reader, text, events)
        return
      }
      case 'advanced':
        for (const entry of present(entries, frame.value.subscriptionIds))
          entry.position = Math.max(entry.position, frame.value.sequence)
        return
      case 'availability': {
        const { subscriptionIds, data, occurredAt } = frame.value
        forwardAvailability(present(entries, subscriptionIds), data, timestampDate(occurredAt!))
        return
      }
      case 'paused': {
        const { subscriptionId } = frame.value
        const entry = entries.get(subscriptionId)
        entry?.sink.whenDrained(entry.reader, () => {
          // The subscription may have moved to another core under a new id.
          if (entry.id === subscriptionId) entry.link?.link.send({ case: 'continue', value: { subscriptionId } })
        })
        return
      }
      case 'closed': {
        const entry = entries.get(frame.value.subscriptionId)
        if (entry !== undefined) onClosed(entry, frame.value.error)
      }
    }
  }

  function forwardEvent(entries: Entries, event: Event) {
    const text = encodeStreamedEvent(event)
    if (text === undefined) logger.error({ sequence: event.sequence }, 'event has an unsafe id or name; skipping it')
    const bytes = text && Buffer.from(text)
    const ending = ENDING_EVENTS.has(event.type)
    for (const entry of present(entries, event.subscriptionIds)) {
      const isLogged = event.id !== ''
      // A stream that moves after its end event, and before it is closed, gets this event from both cores.
      if (entry.endedBy || (isLogged && !ending && event.sequence <= entry.position)) continue
      entry.position = Math.max(entry.position, event.sequence)
      if (ending) entry.endedBy = event.type
      if (bytes) entry.sink.write(entry.reader, bytes)
    }
  }

  /**
   * Writes only to readers whose last availability differs: one that resumes on another core may have
   * missed the change, or already have it.
   */
  function forwardAvailability(readers: Iterable<Entry>, data: string, occurredAt: Date) {
    const type = 'availability.changed'
    const at = occurredAt.toISOString()
    const json = `{"type":"${type}","category":"${eventCategories[type]}","occurredAt":"${at}","data":${data}}`
    const bytes = Buffer.from(encodeStreamedEvent({ id: '', type, json })!)
    for (const entry of readers) {
      if (entry.availability === data) continue
      entry.availability = data
      entry.sink.write(entry.reader, bytes)
    }
  }

  function onOpened(entry: Entry, opened: Opened) {
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

  function onClosed(entry: Entry, error: ErrorInfo | undefined) {
    // A retryable error must not end the stream. The next `tick` subscribes again.
    if (entry.opened && !entry.attached && error?.retryable) {
      entry.refusedBy = entry.link
      balanceAfter = clock.now() + BALANCE_PAUSE_MS
      wait(entry)
    } else finish(entry, error && errorFromInfo(error))
  }

  function tick() {
    for (const entry of [...pending]) {
      const waited = clock.now() - entry.waitingSince
      if (waited >= (entry.opened ? ORPHAN_MS : OPEN_DEADLINE_MS)) {
        sendUnsubscribe(entry)
        finish(entry)
      } else if (entry.link === undefined) attach(entry)
    }
    balance()
  }

  /** Moves nothing while moved subscriptions have not opened again, or soon after a core refused one. */
  function balance() {
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

  function sendUnsubscribe(entry: Entry) {
    entry.link?.link.send({ case: 'unsubscribe', value: { subscriptionId: entry.id } })
  }

  return {
    /** One sink serves all readers: closures for each of thousands would use most of the memory. */
    subscribe(request: Pick<Entry, 'credentials' | 'sink' | 'reader'> & { start: StartPoint }): StreamSubscription {
      const state = { id: 0, link: undefined, opened: false, attached: false, epoch: '', position: 0, waitingSince: 0 }
      const entry: Entry = { ...state, availability: '', ...request }
      wait(entry)
      if (!attach(entry)) finish(entry)
      return entry
    },
    unsubscribe(subscription: StreamSubscription) {
      const entry = subscription as Entry
      sendUnsubscribe(entry)
      drop(entry)
    },
    start() {
      const isBusy = () => [...links.values()].some(({ entries }) => entries.size > 0)
      cores.follow({ added: addNode, removed: removeNode, isBusy })
      const flush = () => presence.flush([...links.values()].map(({ link }) => link))
      stopTimers.push(clock.every(TICK_MS, tick), clock.every(PRESENCE_FLUSH_MS, flush))
    },
    stop() {
      for (const stopTimer of stopTimers) stopTimer()
      for (const { link } of links.values()) link.stop()
    },
  }
})

/** Streams that move at once. Each reads what it may have missed. */
const MOVES_MAX = 20
/** Smaller differences between cores stay, so that no stream moves to and fro. */
const SLACK_MIN = 10
const SLACK_SHARE = 0.1

/** Returns how many streams to move from the fullest to the emptiest core, as indexes of `sizes`. */
export function planMove(sizes: readonly number[]): { from: number; to: number; count: number } | undefined {
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
  if (!(most - least > Math.max(SLACK_MIN, mean * SLACK_SHARE))) return undefined
  const count = Math.min(MOVES_MAX, Math.ceil((most - least) / 2))
  return { from: sizes.indexOf(most), to: sizes.indexOf(least), count }
}
