import type { Db } from 'mongodb'

/**
 * A change of stored data. `expand` only adds data, so processes of the previous version may run. `contract` may
 * run only when none of them is left. Both steps can be repeated after a failure.
 */
export interface Migration {
  number: number
  name: string
  expand?(db: Db): Promise<void>
  contract?(db: Db): Promise<void>
}

export interface MigrationDocument {
  _id: number
  name: string
  expandedAt: Date
  contractedAt?: Date
  /** Older versions than the one that ran `contract` cannot use the data. */
  version?: string
}

/** A number is never reused. The first one names the schema without changes. */
export const migrations: Migration[] = [{ number: 1, name: 'schema 1, of release 1.0.0-rc' }]
