import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { atTick } from '../../platform/concurrency/ticks.ts'
import { stackFrames } from '../../platform/observability/stack-frames.ts'

/** A job that keeps failing is logged again after this time. */
const logEveryMs = 60_000
/** The first run begins within this time, because a crash may have left work. */
const firstRunMs = 5_000
/** A job with a longer period waits for about one period before its first run. */
const longPeriodMs = 60_000
/** Shortest pause before work that `run` says is due. The clocks of cores differ. */
const minPauseMs = 20
/** Longest pause after a failure. */
const retryMs = 5_000

/**
 * Runs work periodically, one run at a time. The pause between runs varies at random by up to 20
 * percent. What makes work calls `wake`, so the period is only for work that a crash has left. `run`
 * may return the time in milliseconds after which its next work is due.
 */
export function createJob(options: {
  name: string
  everyMs: number
  run: () => Promise<unknown>
  logger: Logger
  random?: () => number
}) {
  const { name, everyMs, run, logger, random = Math.random } = options
  let cancel = () => {}
  let running: Promise<unknown> | undefined
  /** Time of the next run, on the clock of `performance`. During a run, it is the time of the run after it. */
  let nextAt = Number.POSITIVE_INFINITY
  let state: 'created' | 'started' | 'stopped' = 'created'
  let lastSuccessAt = Date.now()
  /** Number of failures since the last success. */
  let failures = 0
  let logged: { at: number; place: string | undefined } | undefined

  function report(error: Error) {
    failures += 1
    const place = placeOf(error)
    if (logged && logged.place === place && performance.now() - logged.at < logEveryMs) return
    logged = { at: performance.now(), place }
    logger.warn({ reason: error.name, place, failures }, `${name} failed; the next run repeats it`)
  }

  /** Makes the next run begin within this time in milliseconds. */
  function wake(inMs: number = 0) {
    const at = performance.now() + inMs
    if (at >= nextAt) return
    nextAt = at
    if (state === 'started' && !running) waitExactly()
  }

  function waitExactly() {
    cancel()
    const timer = setTimeout(begin, Math.max(0, nextAt - performance.now()))
    cancel = () => clearTimeout(timer)
  }

  function begin() {
    cancel()
    nextAt = Number.POSITIVE_INFINITY
    running = run()
      .then((dueInMs) => {
        lastSuccessAt = Date.now()
        failures = 0
        logged = undefined
        if (typeof dueInMs === 'number') nextAt = Math.min(nextAt, performance.now() + Math.max(dueInMs, minPauseMs))
      })
      .catch(report)
      .finally(() => {
        running = undefined
        if (state === 'stopped') return
        const pauseMs = jittered(failures === 0 ? everyMs : Math.min(everyMs, retryMs))
        const endsAt = performance.now() + pauseMs
        if (nextAt < endsAt) return waitExactly()
        nextAt = endsAt
        cancel = atTick(pauseMs, begin)
      })
  }

  const jittered = (ms: number) => ms * (0.8 + 0.4 * random())

  return {
    name,
    everyMs,
    /** End of the last successful run, in milliseconds since 1970; at first the time of creation. */
    lastSuccessAt: () => lastSuccessAt,
    start() {
      state = 'started'
      wake(everyMs > longPeriodMs ? jittered(everyMs) : Math.min(everyMs, firstRunMs) * random())
      waitExactly()
    },
    wake,
    /** Starts no more runs. Resolves when the current run, if any, has ended. */
    async stop() {
      state = 'stopped'
      cancel()
      await running
    },
  }
}

export const createJobs = (
  { logger }: { logger: Logger },
  jobs: Record<string, [everyMs: number, run: () => Promise<unknown>]>,
) => Object.entries(jobs).map(([name, [everyMs, run]]) => createJob({ name, everyMs, run, logger }))

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the first line of our own code in the stack of an error, such as `core/log/event-log.ts:12`. */
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
 * part of the keys, of at least `minPart`; `steps` calls return all of them. A key that is added
 * meanwhile may wait for the next round.
 */
export function createRounds<K>(present: () => Iterable<K>, steps: number, minPart = 1): () => K[] {
  let left: K[] = []
  let part = 0
  let calls = 0
  return () => {
    if (calls === 0) {
      left = [...present()]
      part = Math.max(minPart, Math.ceil(left.length / steps))
    }
    calls = (calls + 1) % steps
    return left.splice(0, part)
  }
}
