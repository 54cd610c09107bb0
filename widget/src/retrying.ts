import { type BackoffRange, backoffDelay } from './backoff.ts'
import { toWidgetError, type WidgetError } from './errors.ts'
import type { Pause } from './pause.ts'

/** Between the attempts of most calls. */
export const retryRange: BackoffRange = { minMs: 1_000, maxMs: 30_000 }

export interface Retrying {
  pause: Pick<Pause, 'wait'>
  random: () => number
  range?: BackoffRange
  /** Asked after each failure that may pass, before the wait and after it: true gives up. `attempt` counts from 0. */
  isEnough?(failure: WidgetError, attempt: number): boolean
  /** Called before the wait for another attempt. `attempt` is the one that failed. */
  onRetry?(failure: WidgetError, attempt: number): void
}

/**
 * Makes a call until it succeeds. Only failures that the service calls retryable are tried again, after a full-jitter
 * backoff that is never shorter than the `retryAfter` of the answer. Rejects with the failure that was the last.
 */
export async function retrying<Answer>(call: () => Promise<Answer>, options: Retrying): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await call()
    } catch (error) {
      const failure = toWidgetError(error)
      const isEnough = () => options.isEnough?.(failure, attempt)
      if (!failure.retryable || failure.terminal || isEnough()) throw failure
      options.onRetry?.(failure, attempt)
      await options.pause.wait(backoffDelay(attempt, options.range ?? retryRange, options.random), failure.retryAfterMs)
      if (isEnough()) throw failure
    }
  }
}
