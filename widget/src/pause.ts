import type { Clock, TimerId } from './platform.ts'

export interface Pause {
  /** Resolves after `ms` milliseconds, or sooner by `hurry` or `end`. One wait at a time. */
  wait(ms: number, notBeforeMs?: number): Promise<void>
  /** Ends the wait early, but not before its `notBeforeMs`. */
  hurry(): void
  /** Ends the wait at once. */
  end(): void
  isWaiting(): boolean
}

/** A wait that an event can end early, for example the return of the network. */
export function createPause(clock: Clock): Pause {
  let current: { notBefore: number; timer: TimerId; resolve: () => void } | undefined

  return {
    wait: (ms, notBeforeMs = 0) =>
      new Promise((resolve) => {
        const timer = clock.setTimeout(end, Math.max(ms, notBeforeMs))
        current = { notBefore: clock.now() + notBeforeMs, timer, resolve }
      }),
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
