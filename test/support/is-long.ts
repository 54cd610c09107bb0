/** True during `npm run test:long`. Tests then run more repetitions. */
export const isLong = (import.meta as { env?: { MODE?: string } }).env?.MODE === 'long'

/**
 * Returns the parameters of a property test. `npm run test:long` checks `all` cases, and `npm test`
 * checks `all / share` cases. Each run of the suite generates other cases, so that many cases are
 * checked over time.
 */
export const runs = (all: number, share = 40): { numRuns: number } => ({
  numRuns: isLong ? all : Math.max(1, Math.round(all / share)),
})
