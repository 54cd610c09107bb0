import { connectFault, createMongoClient } from './client-options.ts'
import { type Collections, collectionsOf } from './collections.ts'
import { durableWriteConcern } from './durability.ts'
import type { OnWait } from './migration-lock.ts'
import { migrate, type SchemaStatus, schemaStatus } from './schema.ts'
import { beginHistory } from './store-history.ts'

/** Tools of the migration command: they check and migrate a whole database. */
export interface SchemaTools {
  collections: Collections
  status(): Promise<SchemaStatus>
  migrate(options: { contract: boolean; onWait?: OnWait }): Promise<SchemaStatus>
  /** Makes all positions of readers invalid, after the data was restored. */
  beginHistory(): Promise<string>
  close(): Promise<void>
}

/** Connects to a database without changing it. Calls on this connection have no timeout. */
export async function openSchemaTools(settings: {
  uri: string
  name: string
  timeoutMs: number
}): Promise<SchemaTools> {
  const client = createMongoClient(settings.uri, {
    appName: 'service-migrate',
    readPreference: 'primary',
    serverSelectionTimeoutMS: settings.timeoutMs,
    connectTimeoutMS: settings.timeoutMs,
    ignoreUndefined: true,
  })
  try {
    await client.connect()
    const db = client.db(settings.name, { writeConcern: await durableWriteConcern(client) })
    return {
      collections: collectionsOf(db),
      status: () => schemaStatus(db),
      migrate: (options) => migrate(db, options),
      beginHistory: () => beginHistory(db),
      close: () => client.close(),
    }
  } catch (error) {
    await client.close()
    throw connectFault(error)
  }
}
