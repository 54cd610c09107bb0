import type { Logger } from 'pino'

export interface Job {
  start(): void
  /** Resolves when the run under way, if any, has ended. */
  stop(): Promise<void>
}

/** Runs work periodically, one run at a time. The pause varies at random by up to a fifth. */
export function createJob(options: {
  name: string
  everyMs: number
  run: () => Promise<unknown>
  logger: Logger
  random?: () => number
}): Job {
  const { name, everyMs, run, logger, random = Math.random } = options
  let timer: NodeJS.Timeout | undefined
  let running: Promise<unknown> = Promise.resolve()
  let stopped = false

  function schedule() {
    if (stopped) return
    timer = setTimeout(
      () => {
        running = run()
          .catch((error: Error) => logger.warn({ reason: error.name }, `${name} failed; the next run repeats it`))
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
