export interface BackoffRange {
  /** No delay is shorter. Milliseconds. */
  minMs: number
  /** No delay is longer. Milliseconds. */
  maxMs: number
}

/**
 * The delay before the next attempt, in milliseconds: anywhere between `minMs` and a ceiling that doubles with each
 * attempt up to `maxMs` (full jitter), so that clients which lost the same server do not come back together.
 *
 * @param attempt 0 for the first retry.
 * @param random a number from 0 up to, not including, 1.
 */
export function backoffDelay(attempt: number, range: BackoffRange, random: () => number): number {
  const ceiling = Math.min(range.maxMs, range.minMs * 2 ** (attempt + 1))
  return range.minMs + random() * (ceiling - range.minMs)
}
