import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isOutOfReach } from './faults.ts'

/** From one attempt to the next, in milliseconds. */
const pauseMs = 1_000

export interface StartRetries {
  logger: Pick<Logger, 'info' | 'warn'>
  /** How long a database that is out of reach is waited for, in milliseconds. */
  withinMs: number
  /** Ends the waiting. */
  signal?: AbortSignal | undefined
  /** Milliseconds of a clock that never goes back. */
  monotonic?: () => number
}

/**
 * Runs a step of the start again while the database is out of reach or too slow. The step must bear being run again.
 * Errors: those of the step that a later run would meet too; one that names the time and the last failure when the time is
 * over; the signal's reason.
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
      if (!isOutOfReach(error)) throw error
      if (waitedMs + pauseMs > withinMs) throw new Error(overdue(withinMs, error as Error), { cause: error })
      const reason = (error as Error).name
      logger.warn({ reason, waitedMs, withinMs }, `database is out of reach; retrying in ${pauseMs / 1000} s`)
      await delay(pauseMs, undefined, { signal })
    }
  }
}

const overdue = (withinMs: number, { message }: Error) =>
  `the database could not be reached within ${withinMs / 1000} s: ${message}`
