import { setTimeout as delay } from 'node:timers/promises'

/** Pauses that grow with each failure until `reset`. */
export interface Backoff {
  failures(): number
  reset(): void
  /** Resolves after the pause, or when the signal is aborted. */
  pause(signal: AbortSignal): Promise<void>
}

/** Doubles the pause with each failure, from `minMs` to `maxMs`, with jitter of 50 to 100 %. */
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
      const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(failures++, 20))
      await delay(ceiling * (0.5 + random() / 2), undefined, { signal }).catch(() => {})
    },
  }
}
