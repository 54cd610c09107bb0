import { Code, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import { createLruCache } from '../../platform/lru-cache.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { LogEvent } from '../log-event.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { ConnectPeer, PeerConnection } from './peer-client.ts'
import type { PeerStore } from './peer-store.ts'

/** The other cores. */
export interface Peers {
  /**
   * Announces an event to the other cores. `changes` is the number of wake-ups with state changes
   * that this core has written.
   */
  announce(event: LogEvent, changes: number): void
  /** Whether every other core receives the announcements of this core. */
  areLinked(): boolean
  /** Reads the ids of the other running cores that confirm changes of state. */
  confirming(): Promise<string[]>
  /**
   * Returns the time of the clock `monotonic` since which the other cores wait for this core's
   * confirmations. Undefined while they may not wait.
   */
  registeredSince(): number | undefined
  /** Must be called when another core has called this core. */
  heardFrom(processId: string): void
  /** Renews this core's entry in the register and connects to the other cores. */
  refresh(): Promise<void>
  /** Closes the connections and removes this core from the register. */
  stop(): Promise<void>
}

/** A connected core. */
interface Peer {
  connection: PeerConnection
  /** Whether the core answered the last call. */
  isLinked: boolean
  /** Whether a warning was logged since the last answer. */
  hasWarned: boolean
  waiting: LogEvent[]
  /** Sends the waiting events. */
  send(): void
  /** Sends a call even if no event is waiting. */
  greet(): void
}

/** Interval in milliseconds at which a core renews its lease and reads the register. */
export const refreshEveryMs = 2_000
const leaseMs = 10_000
/** Tolerated difference of the cores' clocks in milliseconds. */
const clockSkewMs = 2_000
/** Maximum number of events in one call. */
const maxEvents = 500
/**
 * Maximum number of events that wait for one core. If more events wait, they are dropped, and the
 * other core finds them by wake-ups in the database.
 */
const maxWaiting = 5_000
/**
 * A call with more events omits their contents. The other core then reads them with one query,
 * which costs less.
 */
const maxContents = 32
/** Maximum length of an announced body in characters. */
const maxBodyChars = 8_000
const maxCallers = 1_000

/**
 * Announces new events directly to the other cores, which it finds in a register in the database.
 * An announcement may be lost; the wake-ups in the database are complete.
 */
export function createPeers(dependencies: {
  store: PeerStore
  processId: string
  /** URL of this core for other cores; empty if other cores cannot call it. */
  url: string
  connect: ConnectPeer
  metrics: CoreMetrics
  logger: Logger
  now: () => number
  /** A clock in milliseconds that never goes back. */
  monotonic?: () => number
}): Peers {
  const { store, processId, url, connect, metrics, logger, now, monotonic = () => performance.now() } = dependencies
  /** Connected cores by process id. */
  const peers = new Map<string, Peer>()
  /** Ids of the cores that have called this core. */
  const callers = createLruCache<true>(maxCallers)
  /** Whether the register was read, and every core in it has a URL. */
  let isComplete = false
  let changesWritten = 0
  let isStopped = false
  /** Start and end of this core's unbroken registration, by the clock `monotonic`. */
  const registered = { since: 0, until: Number.NEGATIVE_INFINITY }

  function connectTo(id: string, url: string): Peer {
    const connection = connect(url)
    let mustGreet = false
    const sending = createSingleFlight(
      () => mustGreet || peer.waiting.length > 0,
      async () => {
        mustGreet = false
        const events = peer.waiting.splice(0, maxEvents)
        const hasContents = events.length <= maxContents
        try {
          const answeredBy = await connection.announce({
            from: processId,
            changes: changesWritten,
            events: events.map((event) => ({
              conversationId: event.conversationId,
              sequence: event.sequence,
              closed: event.closed === true,
              event: hasContents && (event.message?.body.length ?? 0) <= maxBodyChars ? event : undefined,
            })),
          })
          metrics.peerAnnouncements.inc({ result: 'sent' }, events.length)
          // The id differs if another process now uses the URL of a dead process, or if a core has
          // registered a wrong URL.
          setLinked(peer, answeredBy === id)
          peer.hasWarned = false
        } catch (error) {
          metrics.peerAnnouncements.inc({ result: 'failed' }, events.length + peer.waiting.length)
          if (!peer.hasWarned && !isStopped)
            logger.warn(
              { url, reason: Code[ConnectError.from(error).code] },
              'another core does not answer; that core will find new events in the database',
            )
          peer.hasWarned = true
          setLinked(peer, false)
          peer.waiting = []
        }
      },
    )
    const peer: Peer = {
      connection,
      isLinked: false,
      hasWarned: false,
      waiting: [],
      send: () => void sending.run(),
      greet() {
        mustGreet = true
        peer.send()
      },
    }
    return peer
  }

  const registeredSince = () => (monotonic() < registered.until - clockSkewMs ? registered.since : undefined)

  async function refresh() {
    const at = now()
    const until = monotonic() + leaseMs
    await store.renew(processId, url || undefined, new Date(at + leaseMs))
    if (registeredSince() === undefined) registered.since = monotonic()
    registered.until = until
    const others = await store.others(processId, new Date(at))
    if (isStopped) return
    isComplete = others.every(({ url }) => url !== undefined)
    for (const [id, { connection }] of peers) {
      if (others.some((other) => other.processId === id)) continue
      peers.delete(id)
      connection.close()
    }
    for (const { processId: id, url } of others)
      if (url !== undefined && !peers.has(id)) peers.set(id, connectTo(id, url))
    for (const peer of peers.values()) if (!peer.isLinked) peer.greet()
    countLinked()
  }

  function setLinked(peer: Peer, isLinked: boolean) {
    peer.isLinked = isLinked
    countLinked()
  }

  const countLinked = () => metrics.peers.set([...peers.values()].filter(({ isLinked }) => isLinked).length)

  return {
    announce(event, changes) {
      changesWritten = changes
      for (const peer of peers.values()) {
        if (!peer.isLinked) continue
        if (peer.waiting.length >= maxWaiting) peer.waiting = []
        peer.waiting.push(event)
        peer.send()
      }
    },

    async confirming() {
      const others = await store.others(processId, new Date(now()))
      return others.filter(({ confirms }) => confirms).map(({ processId: id }) => id)
    },

    registeredSince,

    areLinked: () => isComplete && [...peers.values()].every(({ isLinked }) => isLinked),

    heardFrom(id) {
      if (callers.has(id)) return
      callers.set(id, true)
      refresh().catch((error: Error) => logger.warn({ reason: error.name }, 'register of cores not read; will retry'))
    },

    refresh,

    async stop() {
      isStopped = true
      for (const { connection } of peers.values()) connection.close()
      peers.clear()
      await store.remove(processId).catch(() => {})
    },
  }
}
