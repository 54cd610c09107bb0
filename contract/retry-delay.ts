const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** The delay after the first attempt, after the second, and so on (contract, section 5). */
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

/** The longest delay that a destination's `Retry-After` can set. */
const retryAfterMaxMs = hour

/** Lengthens a delay at random by up to this fraction. Shortening it would violate `Retry-After`. */
const jitter = 0.2

/**
 * Returns milliseconds from the end of an attempt to the next; undefined after the last. A manual attempt
 * counts like the automatic one that it replaces.
 */
export function retryDelay(
  attemptNumber: number,
  { retryAfterMs = 0, random }: { retryAfterMs?: number; random: () => number },
): number | undefined {
  const scheduled = retryDelaysMs[attemptNumber - 1]
  if (scheduled === undefined) return undefined
  const least = Math.max(scheduled, Math.min(retryAfterMs, retryAfterMaxMs))
  return least + Math.floor(least * jitter * random())
}
