import type { Clock, TimerId } from './platform.ts'

/** Longest wait that an answer can cause, for example with `Retry-After`. */
export const longestWaitMs = 120_000

export type Pause = ReturnType<typeof createPause>

/** Creates waits that can be ended early, for example when the network works again. */
export function createPause(clock: Clock) {
  let current: { notBefore: number; timer: TimerId; resolve: () => void } | undefined

  return {
    /**
     * Resolves after `ms` or `notBeforeMs` milliseconds, whichever is longer, and after `longestWaitMs`
     * at the latest. `hurry` and `end` can end the wait earlier. Only one wait at a time is possible.
     */
    wait: (ms: number, notBeforeMs = 0) =>
      new Promise<void>((resolve) => {
        const timer = clock.setTimeout(end, Math.min(longestWaitMs, Math.max(ms, notBeforeMs)))
        current = { notBefore: clock.now() + Math.min(longestWaitMs, notBeforeMs), timer, resolve }
      }),
    /** Ends the current wait early, but not before its `notBeforeMs` milliseconds have passed. */
    hurry() {
      if (!current) return
      const restMs = current.notBefore - clock.now()
      if (restMs <= 0) return end()
      clock.clearTimeout(current.timer)
      current.timer = clock.setTimeout(end, restMs)
    },
    end,
    isWaiting: () => current !== undefined,
  }

  function end() {
    if (!current) return
    const { timer, resolve } = current
    current = undefined
    clock.clearTimeout(timer)
    resolve()
  }
}

export interface BackoffRange {
  minMs: number
  maxMs: number
}

/**
 * Returns a random delay before a retry, from `minMs` to a ceiling (full jitter). For the first retry, `attempt` is 0;
 * with each further one, the ceiling doubles, up to `maxMs`.
 */
export function backoffDelay(attempt: number, range: BackoffRange, random: () => number) {
  const ceiling = Math.min(range.maxMs, range.minMs * 2 ** (attempt + 1))
  return range.minMs + random() * (ceiling - range.minMs)
}

/**
 * Returns a function that runs `task`. Two runs never overlap. If the function is called during a run,
 * the task runs once more afterwards, so it misses no change. The promise resolves after the last run.
 * `task` must not reject.
 */
export function onceMore(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let isWanted = false

  async function run() {
    while (isWanted) {
      isWanted = false
      await task()
    }
    running = undefined
  }

  return () => {
    isWanted = true
    running ??= run()
    return running
  }
}
