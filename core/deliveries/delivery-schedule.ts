const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Delay after the first attempt, the second and so on, in milliseconds (contract, section 5). */
export const retryDelaysMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  6 * hour,
  12 * hour,
]

/** Cap on a destination's `Retry-After`, in milliseconds. */
export const retryAfterMaxMs = hour

/**
 * Fraction of random delay added at most. It never shortens a delay, so `Retry-After` is honoured.
 */
const jitter = 0.2

/**
 * Delay between the end of an attempt and the next one in milliseconds, or undefined after the
 * last. Only the attempt's number counts: a manual attempt replaces the automatic one.
 */
export function retryDelay(
  attemptNumber: number,
  { retryAfterMs = 0, random }: { retryAfterMs?: number | undefined; random: () => number },
): number | undefined {
  const scheduled = retryDelaysMs[attemptNumber - 1]
  if (scheduled === undefined) return undefined
  const least = Math.max(scheduled, Math.min(retryAfterMs, retryAfterMaxMs))
  return least + Math.floor(least * jitter * random())
}
