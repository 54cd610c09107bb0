/** How many things were done lately. */
export interface Pace {
  done(): void
  /** In the time that one window lasts, as it has been going: 0 after a quiet window. */
  perWindow(): number
}

/** Counts by windows of `windowMs`; the clock, in milliseconds, never goes back. */
export function createPace({ windowMs, monotonic }: { windowMs: number; monotonic: () => number }): Pace {
  let window = 0
  let current = 0
  let previous = 0

  function turn(): void {
    const present = Math.floor(monotonic() / windowMs)
    if (present === window) return
    previous = present === window + 1 ? current : 0
    current = 0
    window = present
  }

  return {
    done() {
      turn()
      current += 1
    },
    perWindow() {
      turn()
      return Math.max(current, previous)
    },
  }
}
