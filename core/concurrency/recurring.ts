import type { Logger } from 'pino'

export interface Recurring {
  start(): void
  /** Resolves when a run that is under way is over. */
  stop(): Promise<void>
}

/** Runs work again and again, one run at a time, with a pause that is up to a fifth shorter or longer at random. */
export function createRecurring(options: {
  name: string
  everyMs: number
  run: () => Promise<unknown>
  logger: Logger
  random?: () => number
}): Recurring {
  const { name, everyMs, run, logger, random = Math.random } = options
  let timer: NodeJS.Timeout | undefined
  let running: Promise<unknown> = Promise.resolve()
  let stopped = false

  function schedule() {
    if (stopped) return
    timer = setTimeout(
      () => {
        running = run()
          .catch((error: Error) => logger.warn({ reason: error.name }, `${name} failed, trying again later`))
          .finally(schedule)
      },
      everyMs * (0.8 + 0.4 * random()),
    )
  }

  return {
    start: schedule,
    async stop() {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}
