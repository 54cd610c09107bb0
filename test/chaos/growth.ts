/** What a process holds at one moment. */
export interface Sample {
  residentMb: number
  /** Open files and sockets together. */
  handles: number
  sockets: number
}

/** By so much a later measurement may lie above an earlier one without anything being kept. */
export const allowedGrowth: Sample = { residentMb: 40, handles: 20, sockets: 15 }

/**
 * How much more is held in the last third of the samples than in the second, by the least of each: what is used
 * for a moment does not count, and the first third is for warming up. Pure.
 */
export function growthOf(samples: Sample[]): Sample {
  const third = Math.floor(samples.length / 3)
  const least = (part: Sample[], of: keyof Sample) => Math.min(...part.map((sample) => sample[of]))
  const grown = (of: keyof Sample) => least(samples.slice(-third), of) - least(samples.slice(third, -third), of)
  return { residentMb: grown('residentMb'), handles: grown('handles'), sockets: grown('sockets') }
}

export const isTooMuch = (growth: Sample): boolean =>
  (Object.keys(allowedGrowth) as (keyof Sample)[]).some((of) => growth[of] > allowedGrowth[of])
