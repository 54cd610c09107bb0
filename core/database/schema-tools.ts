import { connectFault, createMongoClient } from './client-options.ts'
import { collectionsOf } from './collections.ts'
import { durableWriteConcern } from './durability.ts'
import type { OnWait } from './migration-lock.ts'
import { migrate, schemaStatus } from './schema.ts'
import { beginHistory } from './store-history.ts'

export type SchemaTools = Awaited<ReturnType<typeof openSchemaTools>>

/** Changes nothing. Calls on this connection have no timeout. */
export async function openSchemaTools(settings: { uri: string; name: string; timeoutMs: number }) {
  const { uri, timeoutMs } = settings
  const client = createMongoClient(uri, { appName: 'service-migrate', timeoutMs, ignoreUndefined: true })
  try {
    await client.connect()
    const db = client.db(settings.name, { writeConcern: await durableWriteConcern(client) })
    return {
      collections: collectionsOf(db),
      status: () => schemaStatus(db),
      migrate: (options: { contract: boolean; onWait?: OnWait }) => migrate(db, options),
      beginHistory: () => beginHistory(db),
      close: () => client.close(),
    }
  } catch (error) {
    await client.close()
    throw connectFault(error)
  }
}
