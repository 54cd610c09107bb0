export interface BackoffRange {
  minMs: number
  maxMs: number
}

/**
 * Returns the delay before the next attempt in milliseconds: a random value between `minMs` and a
 * ceiling. The ceiling doubles with each attempt up to `maxMs` (full jitter), so that clients do
 * not reconnect at the same time.
 *
 * @param attempt 0 for the first retry
 * @param random returns a number from 0 to 1, exclusive
 */
export function backoffDelay(attempt: number, range: BackoffRange, random: () => number): number {
  const ceiling = Math.min(range.maxMs, range.minMs * 2 ** (attempt + 1))
  return range.minMs + random() * (ceiling - range.minMs)
}
