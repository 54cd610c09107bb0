import { createLruCache } from '../../platform/lru-cache.ts'

/**
 * Destinations to which workers are sending, according to the latest claim of each worker to this
 * core.
 */
export interface BusyDestinations {
  saw(claim: { workerId: string; underWay: ReadonlyMap<string, number> }): void
  list(): string[]
}

/**
 * Time in milliseconds after which the claim of a worker is outdated. A worker repeats its claims
 * after 20 s at most.
 */
const maxAgeMs = 30_000
/** Maximum number of destinations of all workers. The oldest claims are forgotten first. */
const maxDestinations = 100_000

export function createBusyDestinations(now: () => number): BusyDestinations {
  const latest = createLruCache<{ at: number; destinations: string[] }>(
    maxDestinations,
    ({ destinations }) => 1 + destinations.length,
  )

  return {
    saw({ workerId, underWay }) {
      latest.set(workerId, { at: now(), destinations: [...underWay.keys()] })
    },
    list() {
      for (const [workerId, { at }] of latest) if (at + maxAgeMs <= now()) latest.delete(workerId)
      return [...new Set([...latest.values()].flatMap(({ destinations }) => destinations))]
    },
  }
}
