import { it } from 'vitest'

const mode = (import.meta as { env?: { MODE?: string } }).env?.MODE

/** True during `npm run test:long`. Tests then run more repetitions. */
export const isLong = mode === 'long'

/** A test that `npm test` skips: it kills processes, repeats runs or takes seconds. */
export const itLong = it.skipIf(mode === 'test')

/**
 * Returns the parameters of a property test. `npm run test:long` checks `all` cases, and `npm test` checks `all /
 * share` cases. Each run of the suite generates other cases, so that many cases are checked over time.
 */
export const runs = (all: number, share = 40): { numRuns: number } => ({
  numRuns: isLong ? all : Math.max(1, Math.round(all / share)),
})

/** The number of this day. Selections of cases depend on it. */
export const today = Math.floor(Date.now() / 86_400_000)

/**
 * Returns the cases of a slow test. `npm run test:long` checks all of them, and `npm test` checks
 * `count`. The selection changes each day, so that all cases are checked over time.
 */
export function someOf<T>(cases: readonly T[], count: number): T[] {
  if (isLong) return [...cases]
  const first = today * count
  return cases.slice(0, count).map((_, index) => cases[(first + index) % cases.length]!)
}
