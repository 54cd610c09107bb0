import { setImmediate as turn } from 'node:timers/promises'
import { createPace } from './pace.ts'

interface SingleFlightOptions {
  /**
   * Minimum time between the starts of two rounds. During the pause, more work arrives for the next
   * round.
   */
  paceMs?: number
  /** Returns true if the next round has no room for more work. The round then starts at once. */
  isFull?: () => boolean
}

/**
 * Creates a single flight. `round` does the work that is present at its start, and `hasMore`
 * returns whether work is left. Work that arrives during a run is done in that run. After an idle
 * time of at least `paceMs`, the first round starts at once.
 */
export function createSingleFlight(
  hasMore: () => boolean,
  round: () => Promise<void>,
  { paceMs = 0, isFull = () => false }: SingleFlightOptions = {},
) {
  let running: Promise<void> | undefined
  const paced = createPace({ everyMs: paceMs })
  let skippingPace = new AbortController()
  let begun = 0
  let ended = 0
  let roundOver = Promise.withResolvers<void>()

  function endRound() {
    ended = begun
    roundOver.resolve()
    roundOver = Promise.withResolvers()
  }

  async function runAll() {
    try {
      // Starts the first round only after the current synchronous code, so that the round includes
      // all work that this code adds. With a pace, it also waits for the I/O callbacks of this turn
      // of the event loop.
      await (paceMs > 0 ? turn() : null)
      while (hasMore()) {
        const begin = () => {
          begun += 1
          return round()
        }
        // `settled` and `caughtUp` abort the pause before the round.
        await paced(begin, { signal: skippingPace.signal, atOnce: isFull() })
        endRound()
      }
    } finally {
      // The run must end in the same turn of the event loop as the last call of `hasMore`.
      // Otherwise, work that arrives after that call and before the end would not start a run.
      running = undefined
      endRound()
    }
  }

  return {
    /**
     * Starts a run, or joins the current run. Settles when that run ends, and rejects if a round
     * fails.
     */
    run() {
      running ??= runAll()
      return running
    },
    /** Resolves when no run is active, even after a failed run. Skips the pause between rounds. */
    async settled() {
      while (running) {
        skippingPace.abort()
        await running.catch(() => {})
      }
      skippingPace = new AbortController()
    },
    /**
     * Resolves when the work that was present at this call has been tried once, even if new work
     * keeps arriving. Skips the pause between rounds.
     */
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
