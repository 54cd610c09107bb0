import type { Logger } from 'pino'

export interface Job {
  readonly name: string
  readonly everyMs: number
  /** End of the last run without a failure, in milliseconds since 1970; before that, the start. */
  lastSuccessAt(): number
  start(): void
  /** Starts no more runs. Resolves when the current run, if any, has ended. */
  stop(): Promise<void>
}

/**
 * Runs work periodically, one run at a time. The pause between runs varies at random by up to 20
 * percent.
 */
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
  let lastSuccessAt = Date.now()

  function schedule() {
    if (stopped) return
    timer = setTimeout(
      () => {
        running = run()
          .then(() => {
            lastSuccessAt = Date.now()
          })
          .catch((error: Error) => logger.warn({ reason: error.name }, `${name} failed; the next run repeats it`))
          .finally(schedule)
      },
      everyMs * (0.8 + 0.4 * random()),
    )
  }

  return {
    name,
    everyMs,
    lastSuccessAt: () => lastSuccessAt,
    start: schedule,
    async stop() {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}

/**
 * Divides work on many keys over several calls. Each call of the returned function returns the next
 * part of the keys. `steps` consecutive calls form a round, which covers all keys. A key that is
 * added during a round may wait for the next round.
 */
export function createRounds<K>(present: () => Iterable<K>, steps: number): () => K[] {
  let left: K[] = []
  let part = 0
  return () => {
    if (left.length === 0) {
      left = [...present()]
      part = Math.ceil(left.length / steps)
    }
    return left.splice(0, part)
  }
}
