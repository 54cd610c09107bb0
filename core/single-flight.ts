export interface SingleFlight {
  /** Makes sure that the work runs, now or as it already does; resolves or rejects as that run does. */
  run(): Promise<void>
  /** Resolves when nothing runs, however it ended. */
  settled(): Promise<void>
}

/**
 * Runs work of the kind «do what is waiting, then look again», one run at a time. What comes up during a run belongs to
 * that run. A round that fails ends it.
 */
export function createSingleFlight(hasMore: () => boolean, round: () => Promise<void>): SingleFlight {
  let running: Promise<void> | undefined

  async function runAll() {
    try {
      // Let everything that is on its way in this turn come along.
      await null
      while (hasMore()) await round()
    } finally {
      // In the same turn as the last look: nothing can come up in between and be left lying.
      running = undefined
    }
  }

  return {
    run() {
      running ??= runAll()
      return running
    },
    async settled() {
      while (running) await running.catch(() => {})
    },
  }
}
