import { setTimeout as delay } from 'node:timers/promises'

/** From a lag of `fromMs` on, the share grows. When the lag is `overMs` more, the share is the whole time. */
const grows = { fromMs: 1_000, overMs: 2_000 }

/**
 * Returns a function that runs pieces of background work, each after a pause, so that they do not delay
 * database calls for messages. Pauses of pieces that run at the same time add up. After an idle time,
 * work starts at once. A piece with `atOnce` has no pause. The `signal` of a piece ends its pause early.
 */
export function createPace(options: {
  /** Maximum share of the time that the work takes. Default: no limit. */
  share?: number
  /** Time by which the work is behind. The share grows with it, up to the whole time. */
  lagMs?: () => number
  /** Minimum time in milliseconds between the starts of two pieces of work. */
  everyMs?: number
  /** Longest pause in milliseconds that `share` causes. */
  maxPauseMs?: number
  /** Ends all pauses. The work after a pause still runs. */
  signal?: AbortSignal
}) {
  const { share = 1, lagMs = () => 0, everyMs = 0, maxPauseMs = Number.POSITIVE_INFINITY, signal } = options
  let pausedUntil = Number.NEGATIVE_INFINITY

  return async <T>(work: () => Promise<T>, options: { signal?: AbortSignal; atOnce?: boolean } = {}) => {
    const { atOnce = false, signal: ending = signal } = options
    const waitMs = () => (atOnce || ending?.aborted ? 0 : pausedUntil - performance.now())
    // A piece that ran meanwhile may have made the pause longer.
    for (let ms = waitMs(); ms > 0; ms = waitMs()) await delay(ms, undefined, { signal: ending }).catch(() => {})
    const began = performance.now()
    try {
      return await work()
    } finally {
      const endedAt = performance.now()
      const behind = Math.min(1, Math.max(0, lagMs() - grows.fromMs) / grows.overMs)
      const grown = share + (1 - share) * behind
      const leftMs = Math.max(0, pausedUntil - endedAt)
      const pauseMs = Math.min(leftMs + (endedAt - began) * (1 / grown - 1), maxPauseMs)
      pausedUntil = Math.max(began + everyMs, endedAt + pauseMs)
    }
  }
}
