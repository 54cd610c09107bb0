/** Counts recently completed attempts. */
interface Pace {
  done(): void
  /** Completed attempts per window: the larger count of the previous and the current window. */
  perWindow(): number
}

/**
 * Creates a counter with windows of `windowMs`. `monotonic` is a monotonic clock in milliseconds.
 */
export function createPace({ windowMs, monotonic }: { windowMs: number; monotonic: () => number }): Pace {
  let window = 0
  let current = 0
  let previous = 0

  function advance(): void {
    const present = Math.floor(monotonic() / windowMs)
    if (present === window) return
    previous = present === window + 1 ? current : 0
    current = 0
    window = present
  }

  return {
    done() {
      advance()
      current += 1
    },
    perWindow() {
      advance()
      return Math.max(current, previous)
    },
  }
}
