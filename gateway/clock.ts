/** Time and timers. They are injected, so that tests control them. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Runs every `ms` until the returned function is called. */
  every(ms: number, run: () => void): () => void
  /** Runs once after `ms`, unless the returned function is called first. */
  after(ms: number, run: () => void): () => void
}

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    every(ms, run) {
      const timer = setInterval(run, ms)
      timer.unref()
      return () => clearInterval(timer)
    },
    after(ms, run) {
      const timer = setTimeout(run, ms)
      timer.unref()
      return () => clearTimeout(timer)
    },
  }
}
