import { Code, ConnectError } from '@connectrpc/connect'
import { createBackoff } from '../../platform/concurrency/backoff.ts'

/** Codes of a core that stops, restarts or is too busy. */
const passing = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Internal,
  Code.Unknown,
  Code.Aborted,
  Code.ResourceExhausted,
  Code.Canceled,
])
const pauses = { minMs: 250, maxMs: 5_000 }

export interface CoreCallOptions {
  signal: AbortSignal
  report: (line: string) => void
}

/** Resolves after the time, or when the signal aborts. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<unknown>

/**
 * Repeats a call while the core does not answer it. Returns undefined if the signal aborts. Throws lasting
 * errors.
 */
export async function untilAnswered<T>(
  call: () => Promise<T>,
  { signal, report }: CoreCallOptions,
): Promise<T | undefined> {
  for (const backoff = createBackoff(pauses); !signal.aborted; await backoff.pause(signal)) {
    try {
      const answer = await call()
      if (backoff.failures() > 0) report('the core answers again')
      return answer
    } catch (reason) {
      if (signal.aborted) return undefined
      const error = ConnectError.from(reason)
      if (!passing.has(error.code)) throw error
      if (backoff.failures() === 0) report(`the core does not answer (${Code[error.code]}); retrying`)
    }
  }
  return undefined
}
