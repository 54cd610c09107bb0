import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'

export interface SingleFlight {
  /** Makes sure that the work runs, now or as it already does; resolves or rejects as that run does. */
  run(): Promise<void>
  /** Resolves when nothing runs, however it ended; work that keeps a pace is hurried. */
  settled(): Promise<void>
  /** Resolves when a round that begins from now on is over, or nothing runs; hurried likewise. It ends under steady work, too. */
  caughtUp(): Promise<void>
}

export interface SingleFlightOptions {
  /** Milliseconds from one round's start to the next one's, for work that may wait a little and so is done for more at once. */
  paceMs?: number
}

/**
 * Runs work of the kind «do what is waiting, then look again», one run at a time. What comes up during a run belongs to
 * that run. A round that fails ends it. The first round after a quiet time starts at once.
 */
export function createSingleFlight(
  hasMore: () => boolean,
  round: () => Promise<void>,
  { paceMs = 0 }: SingleFlightOptions = {},
): SingleFlight {
  let running: Promise<void> | undefined
  let lastRoundAt = Number.NEGATIVE_INFINITY
  let hurried = new AbortController()
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
    // Rejects when it is hurried, which ends the wait.
    if (waitMs > 0) await delay(waitMs, undefined, { signal: hurried.signal }).catch(() => {})
    lastRoundAt = performance.now()
  }

  async function runAll() {
    try {
      // Let everything that is on its way in this turn come along; what may wait a little lets it go out first.
      await (paceMs > 0 ? turn() : null)
      while (hasMore()) {
        if (paceMs > 0) await keepPace()
        begun += 1
        await round()
        endRound()
      }
    } finally {
      // In the same turn as the last look: nothing can come up in between and be left lying.
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
        hurried.abort()
        await running.catch(() => {})
      }
      hurried = new AbortController()
    },
    async caughtUp() {
      const next = begun + 1
      while (running && ended < next) {
        hurried.abort()
        await roundOver.promise
      }
      hurried = new AbortController()
    },
  }
}
