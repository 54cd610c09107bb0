import { setImmediate as turn } from 'node:timers/promises'
import { createPace } from './pace.ts'

/**
 * Runs rounds one after another while `hasMore`. Work that arrives during a run is done in that run.
 * The first round after an idle time of `paceMs` starts at once.
 *
 * @param paceMs minimum time between the starts of two rounds, in which more work arrives
 * @param isFull returns true if the next round has no room for more work, and therefore starts at once
 */
export function createSingleFlight(
  hasMore: () => boolean,
  round: () => Promise<void>,
  { paceMs = 0, isFull = (): boolean => false } = {},
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
      // Waits, so that the first round has all work that the current synchronous code adds. With a pace, it
      // also has what the I/O callbacks of this turn of the event loop add.
      await (paceMs > 0 ? turn() : null)
      while (hasMore()) {
        const begin = () => {
          begun += 1
          return round()
        }
        await paced(begin, { signal: skippingPace.signal, atOnce: isFull() })
        endRound()
      }
    } finally {
      // Runs in the same turn as the last call of `hasMore`, so that work after that call starts a new run.
      running = undefined
      endRound()
    }
  }

  return {
    /** Starts a run, or joins the current one. Rejects if a round fails. */
    run() {
      running ??= runAll()
      return running
    },
    /** Resolves when no run is active, even if a run has failed. Skips the pauses. */
    async settled() {
      while (running) {
        skippingPace.abort()
        await running.catch(() => {})
      }
      skippingPace = new AbortController()
    },
    /**
     * Resolves when the work that was present at this call has been tried once, even if new work
     * keeps arriving. Skips the pauses.
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
