import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isUnreachable } from '../mongodb/faults.ts'

/** Delay between attempts, in milliseconds. */
const pauseMs = 1_000

interface StartRetries {
  logger: Pick<Logger, 'info' | 'warn'>
  /** Maximum time in milliseconds to wait for an unreachable database. */
  withinMs: number
  /** Aborting this signal ends the wait. */
  signal?: AbortSignal | undefined
  /** A clock in milliseconds that never goes back. */
  monotonic?: () => number
}

/**
 * Retries a step of the start while the database is unreachable or too slow. The step must be
 * repeatable. Rejects with a permanent error of the step, or with the reason of the signal. After
 * the time limit, rejects with an error that contains the last failure.
 */
export async function retryAtStart<T>(step: () => Promise<T>, options: StartRetries): Promise<T> {
  const { logger, withinMs, signal, monotonic = () => performance.now() } = options
  const began = monotonic()
  for (;;) {
    signal?.throwIfAborted()
    try {
      return await step()
    } catch (error) {
      const waitedMs = Math.round(monotonic() - began)
      if (!isUnreachable(error)) throw error
      if (waitedMs + pauseMs > withinMs) throw new Error(overdue(withinMs, error as Error), { cause: error })
      const reason = (error as Error).message
      logger.warn({ reason, waitedMs, withinMs }, `database is unreachable; retrying in ${pauseMs / 1000} s`)
      await delay(pauseMs, undefined, { signal })
    }
  }
}

const overdue = (withinMs: number, { message }: Error) =>
  `the database could not be reached within ${withinMs / 1000} s: ${message}`
