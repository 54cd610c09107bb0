import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { LogEnd } from '../log-event.ts'
import type { CoreMetrics } from '../metrics.ts'
import { createAnnouncedChanges, unknownForMs } from './announced-changes.ts'
import { createHeldAnnouncements } from './held-announcements.ts'
import type { Announcement } from './peer-client.ts'
import type { Peers } from './peers.ts'
import type { Wakeup, WakeupDocument, WakeupStore } from './wakeup-store.ts'

export interface Wakeups {
  /**
   * Runs a write that changes the state of these ids. Announces the change to every process before
   * the write, and calls `stateChanged` after the write. If this process dies during the write, or
   * the result of the write is unknown, every process reads the state again several times. So every
   * process finds the change within a second. Errors: those of the announcement and of the write.
   */
  changing<T>(ids: string[], write: () => Promise<T>): Promise<T>
  /**
   * Announces to every process that the state of these ids changed. Resolves when the other
   * processes can read the announcement.
   */
  stateChanged(...ids: string[]): Promise<void>
  /**
   * Whether every change older than a second has arrived here. Cached state is then at most a
   * second old.
   */
  isCurrent(): boolean
  /**
   * Emits `advanced` for events that another core has announced, after all its earlier changes of
   * state have arrived here.
   */
  announced(announcement: Announcement): void
  start(): void
  /** Writes the waiting wake-ups. Resolves even if a write fails. */
  flush(): Promise<void>
  stop(): Promise<void>
}

/**
 * Minimum time in milliseconds between two wake-ups that this process writes. The first wake-up
 * after a pause is written at once.
 */
const paceMs = 10
/**
 * While all other cores are linked, the ends of logs are written after this time in milliseconds.
 * The other cores already know these ends from announcements. A core that is not in the register
 * yet reads them from the wake-up.
 */
const linkedPaceMs = 100

/** Pause before a lost cursor is opened again. */
const CURSOR_PAUSES = { minMs: 50, maxMs: 1_000 }

/**
 * Caches are current while the last complete read of wake-ups is younger than this time in
 * milliseconds. The age of a read counts from its start.
 */
const currentForMs = 900

interface WakeupsDependencies {
  store: WakeupStore
  peers: Pick<Peers, 'announce' | 'areLinked' | 'heardFrom'>
  processId: string
  /** Bus on which `advanced`, `changed` and `gap` are emitted. */
  bus: Bus
  logger: Logger
  metrics: CoreMetrics
  now: () => number
  /** A clock in milliseconds that never goes back. */
  monotonic?: () => number
}

/**
 * Sends wake-ups between the cores. Each write batch adds one small document to a capped
 * collection, which every core follows. While all cores are linked, they announce new events to
 * each other. The wake-ups with the ends of logs are then written less often.
 */
export function createWakeups(dependencies: WakeupsDependencies): Wakeups {
  const { store, peers, processId, bus, logger, metrics, now, monotonic = () => performance.now() } = dependencies
  let heads = new Map<string, LogEnd>()
  let changes = newChanges()
  /**
   * Every change before this time has arrived. The time is the start of the last complete read of
   * wake-ups.
   */
  let currentAsOf = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()
  const announced = createAnnouncedChanges({ bus, monotonic })
  const held = createHeldAnnouncements(bus)
  /** Number of wake-ups with state changes that this process has written. */
  let changesWritten = 0
  let later: NodeJS.Timeout | undefined
  const stopping = new AbortController()

  /** Writes wake-ups. Each has every end and every state change since the previous wake-up. */
  const publishing = createSingleFlight(
    () => heads.size > 0 || changes.ids.size > 0 || changes.announced.length > 0,
    async () => {
      const { ids, announced: begun, ended, published } = changes
      if (ids.size > 0 || begun.length > 0) changesWritten += 1
      const wakeup: WakeupDocument = {
        from: processId,
        heads: [...heads].map(([id, { sequence, closed }]) => [id, sequence, closed] as [string, number, boolean]),
        changed: [...ids],
        ...(begun.length > 0 && { announced: begun }),
        ...(ended.length > 0 && { ended }),
        changes: changesWritten,
        at: new Date(now()),
      }
      heads = new Map()
      changes = newChanges()
      await store.publish(wakeup).then(published.resolve, (error) => {
        published.reject(error)
        throw error
      })
    },
    { paceMs },
  )

  function publish() {
    publishing
      .run()
      .catch((error: Error) =>
        logger.warn(
          { reason: error.name },
          'write of a wake-up failed; other cores find the changes in their periodic checks',
        ),
      )
  }

  /**
   * Records the delay of a wake-up. Ignores wake-ups that were written before this process began to
   * follow them.
   */
  function measureLag({ at }: Wakeup) {
    if (currentAsOf === Number.NEGATIVE_INFINITY) return
    metrics.wakeupLag.observe(Math.max(0, now() - at.getTime()) / 1000)
  }

  function announce({ heads: ends, changed, announced: begun = [], ended = [], at }: Wakeup) {
    for (const [conversationId, sequence, closed] of ends) bus.emit('advanced', conversationId, { sequence, closed })
    if (changed.length > 0) bus.emit('changed', changed)
    for (const change of ended) announced.remove(change)
    // The cursor also reads old wake-ups, for example after the start of this process.
    if (now() - at.getTime() < unknownForMs) for (const { change, ids } of begun) announced.add(change, ids)
  }

  /** Resolves when the other processes can read everything that was added to `changes`. */
  function published(): Promise<void> {
    const { promise } = changes.published
    publish()
    return promise
  }

  async function stateChanged(...ids: string[]) {
    if (ids.length === 0) return
    for (const id of ids) changes.ids.add(id)
    bus.emit('changed', ids)
    await published()
  }

  async function follow() {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      try {
        for await (const next of store.follow(stopping.signal, monotonic)) {
          failures = 0
          if ('from' in next) {
            if (next.from === processId) continue
            measureLag(next)
            announce(next)
            held.release(next.from, next.changes)
          } else {
            if (currentAsOf === Number.NEGATIVE_INFINITY) {
              held.clear()
              bus.emit('gap')
            }
            currentAsOf = Math.max(currentAsOf, next.asOf)
          }
        }
      } catch (error) {
        if (!stopping.signal.aborted)
          logger.warn({ reason: (error as Error).name }, 'wake-ups lost; opening a new cursor')
      }
      currentAsOf = Number.NEGATIVE_INFINITY
      // Rejects when the service stops. The loop then ends.
      await delay(backoffMs(failures + 1, CURSOR_PAUSES), undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  function publishLater() {
    later ??= setTimeout(() => {
      later = undefined
      publish()
    }, linkedPaceMs)
  }

  async function flush() {
    clearTimeout(later)
    later = undefined
    if (heads.size > 0) publish()
    await publishing.settled()
  }

  bus.on('appended', (event) => {
    const { conversationId, sequence, closed = false } = event
    if ((heads.get(conversationId)?.sequence ?? 0) < sequence) heads.set(conversationId, { sequence, closed })
    peers.announce(event, changesWritten)
    if (peers.areLinked()) publishLater()
    else publish()
  })

  return {
    stateChanged,

    async changing(ids, write) {
      const change = randomUUID()
      announced.add(change, ids)
      changes.announced.push({ change, ids })
      await published()
      const result = await write()
      announced.remove(change)
      changes.ended.push(change)
      await stateChanged(...ids)
      return result
    },

    isCurrent: () => monotonic() - currentAsOf < currentForMs,

    announced(announcement) {
      peers.heardFrom(announcement.from)
      held.add(announcement)
    },

    start() {
      following = follow()
    },

    flush,

    async stop() {
      stopping.abort()
      announced.stop()
      await Promise.allSettled([following, flush()])
    },
  }
}

/**
 * Collects changes for the next wake-up. `published` resolves when the other processes can read them.
 */
function newChanges() {
  const published = Promise.withResolvers<void>()
  // Prevents an unhandled rejection when no caller waits for the promise.
  published.promise.catch(() => {})
  return {
    ids: new Set<string>(),
    announced: [] as { change: string; ids: string[] }[],
    ended: [] as string[],
    published,
  }
}
