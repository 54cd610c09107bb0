const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** What is waited after the first attempt, the second and so on, in milliseconds (contract, section 5). */
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

/** No destination is waited for longer because it asks for it, in milliseconds. */
export const retryAfterMaxMs = hour

/** Chance lengthens a pause by this much at most, and never shortens it: what was asked for is kept. */
const jitter = 0.2

/**
 * How long after an attempt's end the next one follows, in milliseconds; undefined when there is none any more. What
 * counts is the attempt's number, whoever asked for the attempts: a manual one takes the place of the automatic one.
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
