import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isUnreachable } from '../mongodb/faults.ts'

const pauseMs = 1_000

/**
 * Repeats a step while the database is unreachable or too slow. Rejects with a lasting error of the step or the
 * reason of the signal. After `withinMs`, rejects with an error that contains the last failure.
 */
export async function retryAtStart<T>(
  step: () => Promise<T>,
  options: { logger: Pick<Logger, 'warn'>; withinMs: number; signal?: AbortSignal; monotonic?: () => number },
): Promise<T> {
  const { logger, withinMs, signal, monotonic = () => performance.now() } = options
  const began = monotonic()
  for (;;) {
    signal?.throwIfAborted()
    try {
      return await step()
    } catch (error) {
      if (!isUnreachable(error)) throw error
      const waitedMs = Math.round(monotonic() - began)
      const { message: reason } = error as Error
      if (waitedMs + pauseMs > withinMs)
        throw new Error(`the database could not be reached within ${withinMs / 1000} s: ${reason}`, { cause: error })
      logger.warn({ reason, waitedMs, withinMs }, `database is unreachable; retrying in ${pauseMs / 1000} s`)
      await delay(pauseMs, undefined, { signal })
    }
  }
}
