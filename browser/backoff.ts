export interface BackoffRange {
  minMs: number
  maxMs: number
}

/**
 * Returns the delay before a retry. The first has `attempt` 0. The delay is random, from `minMs` to a
 * ceiling that doubles up to `maxMs` (full jitter).
 */
export function backoffDelay(attempt: number, range: BackoffRange, random: () => number): number {
  const ceiling = Math.min(range.maxMs, range.minMs * 2 ** (attempt + 1))
  return range.minMs + random() * (ceiling - range.minMs)
}
