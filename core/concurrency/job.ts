import { fileURLToPath } from 'node:url'
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
  /** Failures since the last success, and when and where the last logged one was. */
  let failures = 0
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

/**
 * Returns the file of the product and the line where an error arose, if it did. An error's message may
 * contain data, so it is never logged.
 */
function placeOf({ stack = '' }: Error): string | undefined {
  for (const line of stack.split('\n')) {
    const start = line.indexOf(root)
    if (start < 0 || !line.startsWith('    at ')) continue
    const [file = '', lineNumber = ''] = line.slice(start + root.length).split(':')
    const isOurs = /^[\w./-]+$/.test(file) && !file.startsWith('node_modules/')
    if (isOurs && /^\d+$/.test(lineNumber)) return `${file}:${lineNumber}`
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
