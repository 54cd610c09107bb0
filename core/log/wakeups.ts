import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { LogEnd } from './event-store.ts'
import type { Wakeup, WakeupStore } from './wakeup-store.ts'

export interface Wakeups {
  /**
   * Announces to every process that the state of these ids changed. Resolves when the others can
   * read it.
   */
  stateChanged(...ids: string[]): Promise<void>
  /**
   * Whether all changes older than a second have arrived, so that cached state is at most a second
   * old.
   */
  isCurrent(): boolean
  start(): void
  stop(): Promise<void>
}

/**
 * Minimum time between two wake-ups of this process. The first one after a pause is written at
 * once.
 */
const paceMs = 10

/** The last read that returned every change must have begun within this time. */
const currentForMs = 900

export interface WakeupsDependencies {
  store: WakeupStore
  processId: string
  /** Receives `advanced`, `changed` and `gap`. */
  bus: Bus
  logger: Logger
  metrics: CoreMetrics
  now: () => number
  /** A clock in milliseconds that never goes back. */
  monotonic?: () => number
}

/**
 * Sends wake-ups between the cores. Each write batch adds one small document to a capped
 * collection, which every core follows. The log and the state are always read from their own
 * collections.
 */
export function createWakeups(dependencies: WakeupsDependencies): Wakeups {
  const { store, processId, bus, logger, metrics, now, monotonic = () => performance.now() } = dependencies
  let heads = new Map<string, LogEnd>()
  let changes = newChanges()
  /** Every change before this time has arrived. It is the start of the read, not its end. */
  let currentAsOf = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()
  const stopping = new AbortController()

  /** Each wake-up carries everything since the last one. */
  const publishing = createSingleFlight(
    () => heads.size > 0 || changes.ids.size > 0,
    async () => {
      const { ids, published } = changes
      const wakeup = {
        from: processId,
        heads: [...heads].map(([id, { sequence, closed }]) => [id, sequence, closed] as [string, number, boolean]),
        changed: [...ids],
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
        logger.warn({ reason: error.name }, 'write of a wake-up failed; the periodic check replaces it'),
      )
  }

  /** Wake-ups from before this process followed them do not count. */
  function measureLag({ at }: Wakeup) {
    if (currentAsOf === Number.NEGATIVE_INFINITY) return
    metrics.wakeupLag.observe(Math.max(0, now() - at.getTime()) / 1000)
  }

  function announce({ heads: ends, changed }: Wakeup) {
    for (const [conversationId, sequence, closed] of ends) bus.emit('advanced', conversationId, { sequence, closed })
    if (changed.length > 0) bus.emit('changed', changed)
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
          } else {
            if (currentAsOf === Number.NEGATIVE_INFINITY) bus.emit('gap')
            currentAsOf = Math.max(currentAsOf, next.asOf)
          }
        }
      } catch (error) {
        if (!stopping.signal.aborted)
          logger.warn({ reason: (error as Error).name }, 'wake-ups lost; opening a new cursor')
      }
      currentAsOf = Number.NEGATIVE_INFINITY
      // Rejects on stop, which ends the loop.
      await delay(Math.min(50 * 2 ** failures, 1000), undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  bus.on('appended', ({ conversationId, sequence, closed = false }) => {
    if ((heads.get(conversationId)?.sequence ?? 0) < sequence) heads.set(conversationId, { sequence, closed })
    publish()
  })

  return {
    async stateChanged(...ids) {
      if (ids.length === 0) return
      const { ids: changed, published } = changes
      for (const id of ids) changed.add(id)
      bus.emit('changed', ids)
      publish()
      await published.promise
    },

    isCurrent: () => monotonic() - currentAsOf < currentForMs,

    start() {
      following = follow()
    },

    async stop() {
      stopping.abort()
      await Promise.allSettled([following, publishing.settled()])
    },
  }
}

/** Ids whose state changed, and a promise that resolves when the other processes can read that. */
function newChanges() {
  const published = Promise.withResolvers<void>()
  // Prevents an unhandled rejection when no caller waits.
  published.promise.catch(() => {})
  return { ids: new Set<string>(), published }
}
