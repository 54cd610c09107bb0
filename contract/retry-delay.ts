const second = 1000
const minute = 60 * second
const hour = 60 * minute

/**
 * Retry delays in milliseconds: the first follows the first attempt, the second follows the second
 * attempt, and so on (contract, section 5).
 */
const retryDelaysMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  6 * hour,
  12 * hour,
]

/** Maximum delay that a destination's `Retry-After` can set, in milliseconds. */
const retryAfterMaxMs = hour

/**
 * A delay is lengthened at random by up to this fraction. It is never shortened, so that
 * `Retry-After` is honoured.
 */
const jitter = 0.2

/**
 * Returns the delay in milliseconds between the end of an attempt and the next attempt; undefined
 * after the last attempt. A manual attempt counts like the automatic attempt that it replaces.
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
