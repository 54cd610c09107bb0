import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { stackFrames } from '../../platform/observability/stack-frames.ts'

export interface Job {
  readonly name: string
  readonly everyMs: number
  /**
   * Returns the end of the last successful run, in milliseconds since 1970. Before the first one,
   * returns the time at which the job was created.
   */
  lastSuccessAt(): number
  start(): void
  /** Starts no more runs. Resolves when the current run, if any, has ended. */
  stop(): Promise<void>
}

/** A job that keeps failing is logged again after this time. */
const logEveryMs = 60_000

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
  /** Number of failures since the last success. */
  let failures = 0
  /** The failure that was logged last. */
  let logged: { at: number; place: string | undefined } | undefined

  function report(error: Error) {
    failures += 1
    const place = placeOf(error)
    if (logged && logged.place === place && performance.now() - logged.at < logEveryMs) return
    logged = { at: performance.now(), place }
    logger.warn({ reason: error.name, place, failures }, `${name} failed; the next run repeats it`)
  }

  function schedule() {
    if (stopped) return
    timer = setTimeout(
      () => {
        running = run()
          .then(() => {
            lastSuccessAt = Date.now()
            failures = 0
            logged = undefined
          })
          .catch(report)
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

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the first line of our own code in the stack of an error, such as `core/search/search.ts:12`. */
function placeOf(error: Error): string | undefined {
  for (const frame of stackFrames(error)) {
    const start = frame.indexOf(root)
    const [file = '', line = ''] = frame.slice(start + root.length).split(':')
    if (start >= 0 && !file.startsWith('node_modules/')) return `${file}:${line}`
  }
  return undefined
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
