/** True during `npm run test:long`. Tests then run more repetitions. */
export const isLong = (import.meta as { env?: { MODE?: string } }).env?.MODE === 'long'
