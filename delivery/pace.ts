/** Counts recently completed attempts. */
interface Pace {
  done(destination: string): void
  /** Completed attempts per window: the larger count of the previous and the current window. */
  perWindow(): number
  /** The same count for one destination. */
  ofDestination(destination: string): number
  /** Destinations that completed attempts in the previous or the current window. */
  destinations(): string[]
}

/**
 * Creates a counter with windows of `windowMs`. `monotonic` is a monotonic clock in milliseconds.
 */
export function createPace({ windowMs, monotonic }: { windowMs: number; monotonic: () => number }): Pace {
  let window = 0
  let current = newCounts()
  let previous = newCounts()

  function advance(): void {
    const present = Math.floor(monotonic() / windowMs)
    if (present === window) return
    previous = present === window + 1 ? current : newCounts()
    current = newCounts()
    window = present
  }

  return {
    done(destination) {
      advance()
      current.all += 1
      current.of.set(destination, (current.of.get(destination) ?? 0) + 1)
    },
    perWindow() {
      advance()
      return Math.max(current.all, previous.all)
    },
    ofDestination(destination) {
      advance()
      return Math.max(current.of.get(destination) ?? 0, previous.of.get(destination) ?? 0)
    },
    destinations() {
      advance()
      return [...new Set([...previous.of.keys(), ...current.of.keys()])]
    },
  }
}

const newCounts = () => ({ all: 0, of: new Map<string, number>() })
