import type { Db } from 'mongodb'

/**
 * A change of stored data in two steps. `expand` only adds data, so it may run while processes of
 * the previous version run. `contract` may run only when no such process is left. Both steps can be
 * repeated after a failure.
 */
export interface Migration {
  number: number
  name: string
  expand?(db: Db): Promise<void>
  contract?(db: Db): Promise<void>
}

/** Record of a migration that has run. */
export interface MigrationDocument {
  _id: number
  name: string
  expandedAt: Date
  contractedAt?: Date
  /** Version of the service that ran the contract step. Older versions cannot use the data. */
  version?: string
}

/** All migrations. A number is never reused. The first one names the schema without changes. */
export const migrations: Migration[] = [{ number: 1, name: 'schema 1, of release 1.0.0-rc' }]
