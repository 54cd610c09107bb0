import { setTimeout as delay } from 'node:timers/promises'

/** Pauses that grow from failure to failure, until something succeeds. */
export interface Backoff {
  failures(): number
  reset(): void
  /** Resolves after the pause, or when the signal is aborted. */
  pause(signal: AbortSignal): Promise<void>
}

/** Full jitter between a half and the whole of `minMs`, doubled with each failure up to `maxMs`. */
export function createBackoff({
  minMs = 200,
  maxMs = 5_000,
  random = Math.random,
}: {
  minMs?: number
  maxMs?: number
  random?: () => number
} = {}): Backoff {
  let failures = 0
  return {
    failures: () => failures,
    reset() {
      failures = 0
    },
    async pause(signal) {
      const longest = Math.min(maxMs, minMs * 2 ** Math.min(failures++, 20))
      await delay(longest * (0.5 + random() / 2), undefined, { signal }).catch(() => {})
    },
  }
}
