import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { LogEnd } from './event-store.ts'
import type { Wakeup, WakeupStore } from './wakeup-store.ts'

export interface Wakeups {
  /** Tells every process that the state of these ids changed. Resolves when the others can see it. */
  stateChanged(...ids: string[]): Promise<void>
  /** Whether every change up to a second ago has been heard of here, so that cached state is true to within a second. */
  isCurrent(): boolean
  start(): void
  stop(): Promise<void>
}

/** Least time between two wake-ups of this process, in milliseconds: the first after a quiet time is written at once. */
const paceMs = 10

/** The store must have been asked for changes, and have given all it had, within this many milliseconds. */
const currentFor = 900

export interface WakeupsDependencies {
  store: WakeupStore
  processId: string
  /** Receives `advanced`, `changed` and `gap`. */
  bus: Bus
  logger: Logger
  metrics: CoreMetrics
  now: () => number
  /** Milliseconds of a clock that never goes back. */
  monotonic?: () => number
}

/**
 * How the cores wake each other: each write batch leaves one small document in a capped collection, which every core
 * follows. The log and the state themselves are always read from where they are kept.
 */
export function createWakeups(dependencies: WakeupsDependencies): Wakeups {
  const { store, processId, bus, logger, metrics, now, monotonic = () => performance.now() } = dependencies
  let heads = new Map<string, LogEnd>()
  let changes = newChanges()
  /** Every change up to then has been heard of: when the store was asked, not when its answer came. */
  let currentAsOf = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()
  const stopping = new AbortController()

  /** Whatever came up since the last wake-up goes into the next one. */
  const publishing = createSingleFlight(
    () => heads.size > 0 || changes.ids.size > 0,
    async () => {
      const { ids, told } = changes
      const wakeup = {
        from: processId,
        heads: [...heads].map(([id, { sequence, closed }]) => [id, sequence, closed] as [string, number, boolean]),
        changed: [...ids],
        at: new Date(now()),
      }
      heads = new Map()
      changes = newChanges()
      await store.publish(wakeup).then(told.resolve, (error) => {
        told.reject(error)
        throw error
      })
    },
    { paceMs },
  )

  function publish() {
    publishing.run().catch((error: Error) => logger.warn({ reason: error.name }, 'wake-up not written'))
  }

  /** What was written before this process listened was not late. */
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
        if (!stopping.signal.aborted) logger.warn({ reason: (error as Error).name }, 'wake-ups lost, following anew')
      }
      currentAsOf = Number.NEGATIVE_INFINITY
      // Rejects when it is stopped, which ends the loop.
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
      const { ids: changed, told } = changes
      for (const id of ids) changed.add(id)
      bus.emit('changed', ids)
      publish()
      await told.promise
    },

    isCurrent: () => monotonic() - currentAsOf < currentFor,

    start() {
      following = follow()
    },

    async stop() {
      stopping.abort()
      await Promise.allSettled([following, publishing.settled()])
    },
  }
}

/** Ids whose state changed, and when the others can see it. */
function newChanges() {
  const told = Promise.withResolvers<void>()
  // Nobody may be waiting for it.
  told.promise.catch(() => {})
  return { ids: new Set<string>(), told }
}
