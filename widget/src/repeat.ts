import { backoffDelay } from './backoff.ts'
import { toWidgetError, type WidgetError } from './errors.ts'
import type { Pause } from './pause.ts'

const retryRange = { minMs: 1_000, maxMs: 15_000 }

export interface RepeatOptions {
  pause: Pause
  random: () => number
  /** At most so many, the first among them. */
  attempts: number
  /** No attempt begins later. Milliseconds of the clock. */
  untilMs?: number
  now(): number
}

/**
 * Makes one idempotent call, and again while its failures may pass: what the service calls retryable, after the wait that it
 * asked for. Rejects with the last `WidgetError`.
 */
export async function repeat<Answer>(
  call: () => Promise<Answer>,
  { pause, random, attempts, untilMs = Number.POSITIVE_INFINITY, now }: RepeatOptions,
): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call()
    } catch (error) {
      const failure: WidgetError = toWidgetError(error)
      const waitMs = Math.max(backoffDelay(attempt - 1, retryRange, random), failure.retryAfterMs ?? 0)
      const givesUp = !failure.retryable || failure.terminal || attempt >= attempts
      if (givesUp || now() + waitMs >= untilMs) throw failure
      await pause.wait(waitMs, failure.retryAfterMs)
    }
  }
}
