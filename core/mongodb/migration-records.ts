import type { Collection } from 'mongodb'

/** Record of a migration that has run. */
export interface MigrationDocument {
  _id: number
  name: string
  expandedAt: Date
  contractedAt?: Date
  /** Version of the service that ran the contract step. Older versions cannot use the data. */
  version?: string
}

/**
 * Number of the migration that encrypts the URLs of destinations. Until its contract step, cores of
 * the previous version read and write the plain URL.
 */
export const sealsDestinations = 3

/** Whether the contract step has run. Then no process of the version before the migration is left. */
export async function isContracted(migrations: Collection<MigrationDocument>, number: number): Promise<boolean> {
  return (await migrations.findOne({ _id: number, contractedAt: { $exists: true } })) !== null
}
