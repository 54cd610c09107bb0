/** Resources held by a process at one moment. */
export interface Sample {
  /**
   * Used heap and memory outside it, in MB. Not resident memory: the engine of JavaScript keeps memory that
   * it has used once.
   */
  usedMb: number
  /** Number of open files and sockets. */
  handles: number
  sockets: number
}

/** Growth up to these amounts is normal variation. A core fills its memory of recent events (64 MB) for a while. */
export const allowedGrowth: Sample = { usedMb: 40, handles: 20, sockets: 15 }

/**
 * Returns the growth from the second third of the samples to the last third. The first third is
 * ignored as warm-up. Compares the minimums of the thirds, so that short peaks do not count: the least used
 * heap is the one after a collection.
 */
export function growthOf(samples: Sample[]): Sample {
  const third = Math.floor(samples.length / 3)
  const least = (part: Sample[], of: keyof Sample) => Math.min(...part.map((sample) => sample[of]))
  const grown = (of: keyof Sample) => least(samples.slice(-third), of) - least(samples.slice(third, -third), of)
  return { usedMb: grown('usedMb'), handles: grown('handles'), sockets: grown('sockets') }
}

export const exceedsAllowance = (growth: Sample): boolean =>
  (Object.keys(allowedGrowth) as (keyof Sample)[]).some((of) => growth[of] > allowedGrowth[of])

/**
 * Collections that grow with what the clients of a soak write, and the number of documents that each
 * new event of the logs allows. Clients create and delete sites, so these grow with the time.
 */
export const documentsPerEvent: Readonly<Record<string, number>> = {
  events: 1,
  // A capped collection, which a sweep keeps short.
  wakeups: 1,
  feedEntries: 1.5,
  searchEntries: 1.2,
  deliveries: 0.3,
  leads: 0.2,
  idempotency: 0.2,
  sessions: 0.1,
  conversations: 0.1,
  commands: 0.1,
  policyChanges: 0.1,
  installations: 0.1,
  connections: 0.1,
  removals: 0.1,
}

/** Growth of any collection up to this number of documents is normal variation. */
const allowedDocuments = 20

/**
 * Returns the collections that grew by more than their allowance from the second third of the samples
 * to the last third, with their growth. `samples` are numbers of documents by collection.
 */
export function grownCollections(samples: Record<string, number>[]): Record<string, number> {
  const third = Math.floor(samples.length / 3)
  const least = (part: Record<string, number>[], name: string) => Math.min(...part.map((sample) => sample[name] ?? 0))
  const grownBy = (name: string) => least(samples.slice(-third), name) - least(samples.slice(third, -third), name)
  const allowed = (name: string) => allowedDocuments + (documentsPerEvent[name] ?? 0) * grownBy('events')
  const names = Object.keys(samples.at(-1) ?? {}).filter((name) => grownBy(name) > allowed(name))
  return Object.fromEntries(names.map((name) => [name, grownBy(name)]))
}
