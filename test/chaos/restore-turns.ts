/** Keeps work that a restore would disturb apart from restores. */
export interface RestoreTurns {
  /** Runs work while no restore runs. Many of these run at once. */
  undisturbed<Result>(run: () => Promise<Result>): Promise<Result>
  /** Runs a restore when no such work runs. Work that begins later waits for its end. */
  alone<Result>(run: () => Promise<Result>): Promise<Result>
}

export function createRestoreTurns(): RestoreTurns {
  const running = new Set<Promise<unknown>>()
  let restore: Promise<unknown> | undefined

  return {
    async undisturbed(run) {
      while (restore) await restore
      const work = run()
      const ended = work.then(
        () => {},
        () => {},
      )
      running.add(ended)
      void ended.then(() => running.delete(ended))
      return work
    },

    async alone(run) {
      while (restore) await restore
      const work = Promise.all(running).then(run)
      restore = work
        .catch(() => {})
        .finally(() => {
          restore = undefined
        })
      return work
    },
  }
}
