/**
 * Maximum number of deliveries that a worker gets in advance for one destination. They wait in the
 * worker, so that its next attempt starts without waiting for a core.
 */
const aheadMax = 100
/**
 * A worker gets as many deliveries of a destination in advance as it sends within this time, in
 * milliseconds, at the speed of the destination's last answer.
 */
const aheadMs = 200

/** The free capacity of one worker, as one core counts it. */
export interface WorkerRoom {
  /** Number of further deliveries that the worker takes. */
  places(): number
  /** Upper bound of the further deliveries that the worker takes for this destination. */
  placesFor(destination: string): number
  /** Number of reserved places. */
  taken(): number
  /** Reserves a place for one delivery. Returns false if the worker has no room for it. */
  reserve(destination: string): boolean
  /** Frees the place of a delivery. `durationMs` is the duration of its attempt. */
  free(destination: string, durationMs?: number): void
  resize(size: { limit: number; perDestination: number }): void
  /** Destinations whose deliveries the worker has. */
  destinations(): Iterable<string>
}

interface Usage {
  taken: number
  ahead: number
}

/**
 * Creates the room of a worker. With `isolates`, each destination gets at most a third of the free
 * places, so that a few destinations that hang never use all places. `underWay` and `ahead` are the
 * numbers of deliveries per destination that the worker already has, and that it takes in advance.
 */
export function createWorkerRoom(options: {
  limit: number
  perDestination: number
  isolates?: boolean
  underWay?: ReadonlyMap<string, number>
  ahead?: ReadonlyMap<string, number>
}): WorkerRoom {
  const { isolates = false, underWay = new Map(), ahead = new Map() } = options
  let { limit, perDestination } = options
  let taken = 0
  const usages = new Map<string, Usage>()
  for (const name of [...underWay.keys(), ...ahead.keys()])
    usages.set(name, { taken: underWay.get(name) ?? 0, ahead: ahead.get(name) ?? 0 })

  function placesFor(destination: string): number {
    const usage = usages.get(destination)
    const free = Math.max(0, limit - taken)
    const most = perDestination + (usage?.ahead ?? 0)
    const share = isolates ? Math.max(1, Math.floor(free / 3)) : most
    return Math.max(0, Math.min(free, Math.min(most, share) - (usage?.taken ?? 0)))
  }

  return {
    places: () => Math.max(0, limit - taken),
    placesFor,
    taken: () => taken,
    reserve(destination) {
      if (placesFor(destination) === 0) return false
      const usage = usages.get(destination) ?? { taken: 0, ahead: 0 }
      usages.set(destination, usage)
      usage.taken += 1
      taken += 1
      return true
    },
    free(destination, durationMs) {
      const usage = usages.get(destination)
      if (!usage) return
      usage.taken -= 1
      taken -= 1
      if (usage.taken === 0) usages.delete(destination)
      else if (durationMs !== undefined)
        usage.ahead = Math.min(aheadMax, perDestination * Math.floor(aheadMs / Math.max(durationMs, 1)))
    },
    resize(size) {
      limit = size.limit
      perDestination = size.perDestination
    },
    destinations: () => usages.keys(),
  }
}
