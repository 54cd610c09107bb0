import { setTimeout as delay } from 'node:timers/promises'

const MAX_DOUBLINGS = 20

/**
 * Returns the pause before the next try. The pause doubles with each failure after the first one,
 * up to `maxMs`. It is then multiplied by a random factor from 0.5 to 1.
 */
export function backoffMs(
  failures: number,
  { minMs, maxMs, random = Math.random }: { minMs: number; maxMs: number; random?: () => number },
): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(failures - 1, MAX_DOUBLINGS)) * (0.5 + random() / 2)
}

/** A pause between retries that grows with each failure until `reset`. */
export function createBackoff(range: { minMs: number; maxMs: number }) {
  let failures = 0
  return {
    failures: () => failures,
    reset() {
      failures = 0
    },
    /** Counts a failure. Resolves after the pause, or when the signal is aborted. */
    async pause(signal: AbortSignal) {
      failures += 1
      await delay(backoffMs(failures, range), undefined, { signal }).catch(() => {})
    },
  }
}
