/** Resources held by a process at one moment. */
export interface Sample {
  residentMb: number
  /** Number of open files and sockets. */
  handles: number
  sockets: number
}

/** Growth up to these amounts is normal variation. */
export const allowedGrowth: Sample = { residentMb: 40, handles: 20, sockets: 15 }

/**
 * Returns the growth from the second third of the samples to the last third. The first third is
 * ignored as warm-up. Compares the minimums of the thirds, so that short peaks do not count. A pure
 * function.
 */
export function growthOf(samples: Sample[]): Sample {
  const third = Math.floor(samples.length / 3)
  const least = (part: Sample[], of: keyof Sample) => Math.min(...part.map((sample) => sample[of]))
  const grown = (of: keyof Sample) => least(samples.slice(-third), of) - least(samples.slice(third, -third), of)
  return { residentMb: grown('residentMb'), handles: grown('handles'), sockets: grown('sockets') }
}

export const exceedsAllowance = (growth: Sample): boolean =>
  (Object.keys(allowedGrowth) as (keyof Sample)[]).some((of) => growth[of] > allowedGrowth[of])
