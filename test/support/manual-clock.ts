import type { Clock } from '../../browser/platform.ts'

export interface ManualClock extends Clock {
  /** Advances the time and runs due timers in order. */
  advance(ms: number): void
  /** Advances the time without running timers, as if the computer slept. The next `advance` runs them. */
  sleep(ms: number): void
  /** Returns the milliseconds until the next timer that is at least `minMs` away. */
  nextIn(minMs?: number): number | undefined
}

/** Creates a clock that only tests advance. */
export function createManualClock(startMs = Date.parse('2026-11-20T12:00:00.000Z')): ManualClock {
  let nowMs = startMs
  let counter = 0
  const timers = new Map<number, { dueMs: number; callback: () => void }>()
  return {
    now: () => nowMs,
    setTimeout(callback, ms) {
      counter += 1
      timers.set(counter, { dueMs: nowMs + ms, callback })
      return counter
    },
    clearTimeout: (timer) => void timers.delete(timer as number),
    sleep(ms) {
      nowMs += ms
    },
    nextIn(minMs = 0) {
      const rests = [...timers.values()].map(({ dueMs }) => dueMs - nowMs).filter((rest) => rest >= minMs)
      return rests.length > 0 ? Math.min(...rests) : undefined
    },
    advance(ms) {
      const untilMs = nowMs + ms
      for (;;) {
        const [id, next] =
          [...timers].filter(([, { dueMs }]) => dueMs <= untilMs).sort((a, b) => a[1].dueMs - b[1].dueMs)[0] ?? []
        if (id === undefined || !next) break
        timers.delete(id)
        nowMs = Math.max(nowMs, next.dueMs)
        next.callback()
      }
      nowMs = untilMs
    },
  }
}
