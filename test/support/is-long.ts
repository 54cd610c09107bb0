/** True during `npm run test:long`. Tests then run more repetitions. */
export const isLong = (import.meta as { env?: { MODE?: string } }).env?.MODE === 'long'

/**
 * Parameters of a property test: `all` runs during `npm run test:long`, and one of `share` runs
 * otherwise. Each run of the suite generates other cases, so that short runs cover many over time.
 */
export const runs = (all: number, share = 20): { numRuns: number } => ({
  numRuns: isLong ? all : Math.max(1, Math.round(all / share)),
})
