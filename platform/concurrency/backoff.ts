import { setTimeout as delay } from 'node:timers/promises'

const MAX_DOUBLINGS = 20

/** Returns a pause that doubles with each failure up to `maxMs`, times a random factor from 0.5 to 1. */
export function backoffMs(
  failures: number,
  { minMs, maxMs, random = Math.random }: { minMs: number; maxMs: number; random?: () => number },
): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(failures - 1, MAX_DOUBLINGS)) * (0.5 + random() / 2)
}

export function createBackoff(range: { minMs: number; maxMs: number }) {
  let failures = 0
  return {
    failures: () => failures,
    reset() {
      failures = 0
    },
    async pause(signal: AbortSignal) {
      failures += 1
      await delay(backoffMs(failures, range), undefined, { signal }).catch(() => {})
    },
  }
}
