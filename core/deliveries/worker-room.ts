/** Maximum numbers of deliveries that a worker gets in advance, for one destination and in all. */
const aheadMax = 100
const aheadMaxInAll = 1_000
/** Maximum number of destinations that wait, or whose last answer is kept without open deliveries. */
const rememberedMax = 10_000
/**
 * A worker gets in advance what the destination takes within this time in milliseconds, at the speed of its
 * last answer. So its next attempt starts without waiting for a core.
 */
const aheadMs = 250

/** The free capacity of one worker, as one core counts it. */
export type WorkerRoom = ReturnType<typeof createWorkerRoom>

interface Usage {
  /** Deliveries that the worker sends at once, and in advance. */
  base: number
  extra: number
  /** How many it may have in advance. Unset until the destination has answered. */
  ahead?: number
}

/**
 * Each destination gets at most a third of the free places, so that a few that hang never use all. Those
 * that answer quickly get more in advance.
 */
export function createWorkerRoom(options: { limit: number; perDestination: number }) {
  let { limit, perDestination } = options
  let base = 0
  let extra = 0
  /** Whether the latest answer of any destination was quick. */
  let isQuick = false
  const usages = new Map<string, Usage>()
  /** Destinations with due deliveries for which the worker has no room. */
  const waiting = new Set<string>()

  const newUsage = (): Usage => ({ base: 0, extra: 0 })
  /**
   * A new destination may hang. While fewer than half as many deliveries wait in advance as run, others
   * wait at most for the running ones.
   */
  const aheadOf = ({ ahead }: Usage) => ahead ?? (isQuick && extra < limit / 2 ? 1 : 0)
  const freeBase = () => Math.max(0, limit - base)
  /** A worker that stops takes nothing in advance either. */
  const freeExtra = () => (limit > 0 ? aheadMaxInAll - extra : 0)

  function has(destination: string) {
    const { base, extra } = usages.get(destination) ?? newUsage()
    return base + extra > 0
  }

  function placesOf(usage: Usage) {
    const free = freeBase()
    const share = Math.min(perDestination, Math.max(1, Math.floor(free / 3)))
    return {
      base: Math.max(0, Math.min(free, share - usage.base)),
      extra: Math.max(0, Math.min(freeExtra(), aheadOf(usage) - usage.extra)),
    }
  }

  /** Returns how many more fit, at most. Without room, the destination waits until `free` returns true. */
  function placesFor(destination: string) {
    const free = placesOf(usages.get(destination) ?? newUsage())
    if (free.base + free.extra === 0 && waiting.size < rememberedMax) waiting.add(destination)
    return free.base + free.extra
  }

  return {
    places: () => freeBase() + (usages.size > 0 ? freeExtra() : 0),
    placesFor,
    taken: () => base + extra,
    /** Returns false if the worker has no room for a delivery of the destination. */
    reserve(destination: string) {
      if (placesFor(destination) === 0) return false
      const usage = usages.get(destination) ?? newUsage()
      usages.set(destination, usage)
      if (placesOf(usage).base > 0) {
        usage.base += 1
        base += 1
      } else {
        usage.extra += 1
        extra += 1
      }
      return true
    },
    /** Frees a place after an attempt. Returns true if there is enough room for a waiting destination. */
    free(destination: string, durationMs?: number) {
      const usage = usages.get(destination)
      if (!usage) return false
      const wasFull = base >= limit
      if (usage.extra > 0) {
        usage.extra -= 1
        extra -= 1
      } else {
        usage.base -= 1
        base -= 1
      }
      if (durationMs !== undefined) {
        usage.ahead = Math.min(aheadMax, perDestination * Math.floor(aheadMs / Math.max(durationMs, 1)))
        isQuick = usage.ahead > 0
      }
      if (usage.base + usage.extra === 0 && (!usage.ahead || usages.size > rememberedMax)) usages.delete(destination)
      if (base + extra === 0) waiting.clear()
      if (wasFull && waiting.size > 0) return true
      // At most half of the advance is left, so one claim returns many deliveries.
      return waiting.has(destination) && usage.extra <= aheadOf(usage) / 2 && waiting.delete(destination)
    },
    resize(size: { limit: number; perDestination: number }) {
      limit = size.limit
      perDestination = size.perDestination
    },
    has,
    destinations: () => [...usages.keys()].filter(has),
  }
}
