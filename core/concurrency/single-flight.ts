import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'

export interface SingleFlight {
  /** Starts a run, or joins the current one. Settles with that run. */
  run(): Promise<void>
  /** Resolves when no run is under way, even after a failure. Skips the pace. */
  settled(): Promise<void>
  /**
   * Resolves when a round that begins from now on has ended, or when no run is under way. Skips the
   * pace. It also resolves while work keeps arriving.
   */
  caughtUp(): Promise<void>
}

export interface SingleFlightOptions {
  /** Minimum time between the starts of two rounds, so that one round can do more work. */
  paceMs?: number
}

/**
 * Repeats a round while there is work, one run at a time. Work that arrives during a run belongs to
 * that run. A failed round ends the run. The first round after a pause starts at once.
 */
export function createSingleFlight(
  hasMore: () => boolean,
  round: () => Promise<void>,
  { paceMs = 0 }: SingleFlightOptions = {},
): SingleFlight {
  let running: Promise<void> | undefined
  let lastRoundAt = Number.NEGATIVE_INFINITY
  let skippingPace = new AbortController()
  let begun = 0
  let ended = 0
  let roundOver = Promise.withResolvers<void>()

  function endRound() {
    ended = begun
    roundOver.resolve()
    roundOver = Promise.withResolvers()
  }

  async function keepPace() {
    const waitMs = lastRoundAt + paceMs - performance.now()
    // `settled` and `caughtUp` abort the wait.
    if (waitMs > 0) await delay(waitMs, undefined, { signal: skippingPace.signal }).catch(() => {})
    lastRoundAt = performance.now()
  }

  async function runAll() {
    try {
      // Wait for the other work of this turn; with a pace, also for its I/O.
      await (paceMs > 0 ? turn() : null)
      while (hasMore()) {
        if (paceMs > 0) await keepPace()
        begun += 1
        await round()
        endRound()
      }
    } finally {
      // In the same turn as the last `hasMore`, so that no work can arrive in between.
      running = undefined
      endRound()
    }
  }

  return {
    run() {
      running ??= runAll()
      return running
    },
    async settled() {
      while (running) {
        skippingPace.abort()
        await running.catch(() => {})
      }
      skippingPace = new AbortController()
    },
    async caughtUp() {
      const next = begun + 1
      while (running && ended < next) {
        skippingPace.abort()
        await roundOver.promise
      }
      skippingPace = new AbortController()
    },
  }
}
