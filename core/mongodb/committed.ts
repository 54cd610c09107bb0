/** Reads only what a majority of the servers has, so that no failover rolls it back. */
export const committed = { readConcern: { level: 'majority' } } as const
