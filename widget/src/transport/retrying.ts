import { type BackoffRange, backoffDelay, type Pause } from '../../../browser/pause.ts'
import { toWidgetError, type WidgetError } from '../vocabulary/errors.ts'

/** Default range of the delays between attempts. */
export const retryRange: BackoffRange = { minMs: 500, maxMs: 30_000 }

interface Retrying {
  pause: Pick<Pause, 'wait'>
  random: () => number
  range?: BackoffRange
  /** The most attempts. */
  attempts?: number
  /** Called after each retryable failure, before and after the wait. `attempt` starts at 0. */
  isEnough?(failure: WidgetError, attempt: number): boolean
  /** Called before each wait. `attempt` is the number of the failed attempt, starting at 0. */
  onRetry?(failure: WidgetError, attempt: number): void
}

/**
 * Makes a call until it succeeds. Retries retryable failures with full-jitter backoff. Waits at
 * least as long as the `retryAfter` of the response. If no retry is allowed, rejects with the last
 * failure.
 */
export async function retrying<Answer>(call: () => Promise<Answer>, options: Retrying): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await call()
    } catch (error) {
      const failure = toWidgetError(error)
      const isEnough = () => attempt + 1 >= (options.attempts ?? Infinity) || options.isEnough?.(failure, attempt)
      if (!failure.retryable || failure.terminal || isEnough()) throw failure
      options.onRetry?.(failure, attempt)
      await options.pause.wait(backoffDelay(attempt, options.range ?? retryRange, options.random), failure.retryAfterMs)
      if (isEnough()) throw failure
    }
  }
}
