/** Record of a migration that has run. */
export interface MigrationDocument {
  _id: number
  name: string
  expandedAt: Date
  contractedAt?: Date
  /** Version of the service that ran the contract step. Older versions cannot use the data. */
  version?: string
}

/** Number of the migration that encrypts the URLs of destinations. */
export const sealsDestinations = 3
