import { type Db, GridFSBucket } from 'mongodb'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import { lastBackups } from './backup.ts'
import { connected, createMongoClient } from './client-options.ts'
import { failOnClosedSockets } from './closed-sockets.ts'
import { collectionsOf } from './collections.ts'
import { countConnections, measureDatabase, measureSizes, showBackups } from './database-metrics.ts'
import type { OnWait } from './migration-lock.ts'
import { isReady, openSchemaTools, requireNotNewer, schemaStatus } from './schema.ts'
import { currentHistory } from './store-history.ts'

export type Database = Awaited<ReturnType<typeof openDatabase>>

interface DatabaseSettings {
  uri: string
  name: string
  timeoutMs: number
  /**
   * If true, creates missing collections and indexes; several processes may do so at once. If false, rejects an
   * outdated database.
   */
  migrates?: boolean
  metrics?: CoreMetrics
  onWait?: OnWait
}

/**
 * Connects, and creates or checks collections and indexes. Each acknowledged write is durable
 * (`writeConcernFor`).
 */
export async function openDatabase({ migrates = true, ...settings }: DatabaseSettings) {
  failOnClosedSockets()
  const { uri, timeoutMs } = settings
  const pool = { socketTimeoutMS: timeoutMs, waitQueueTimeoutMS: timeoutMs, maxPoolSize: 32 }
  const client = createMongoClient(uri, { appName: 'service-core', timeoutMs, ignoreUndefined: true, ...pool })
  const metrics = settings.metrics ?? createCoreMetrics()
  countConnections(client, metrics)
  let hasServer = false
  client.on('topologyDescriptionChanged', ({ newDescription: { servers } }) => {
    hasServer = [...servers.values()].some(({ isWritable }) => isWritable)
  })
  if (migrates) {
    // An index build takes long in a large collection, so these calls have no timeout.
    const tools = await openSchemaTools(settings)
    await tools.migrate({ contract: false, onWait: settings.onWait }).finally(tools.close)
  }
  return connected(client, async (writeConcern) => {
    measureDatabase(client, metrics)
    const db = client.db(settings.name, { writeConcern })
    if (!migrates) await requireReady(db)
    measureSizes(db, metrics)
    showBackups(db, metrics)
    return {
      collections: collectionsOf(db),
      screenshots: new GridFSBucket(db, { bucketName: 'screenshots' }),
      /** Id of the history that the data has at the start. A part of every epoch. */
      history: await currentHistory(db),
      version: (await db.admin().buildInfo()).version,
      /** Returns the present id of the history. Another id means that the data was restored since the start. */
      currentHistory: () => currentHistory(db),
      lastBackups: () => lastBackups(db),
      /** Resolves to the server's clock in milliseconds since 1970. Rejects if the command fails. */
      ping: () => serverTime(db),
      /** Whether the driver knows a server that takes writes. If not, commands wait. */
      hasServer: () => hasServer,
      close: () => client.close(),
    }
  })
}

async function serverTime(db: Db) {
  const pipeline = [{ $documents: [{}] }, { $project: { time: '$$NOW' } }]
  const [answer] = await db.aggregate<{ time: Date }>(pipeline).toArray()
  return answer!.time.getTime()
}

async function requireReady(db: Db) {
  const status = await schemaStatus(db)
  requireNotNewer(status)
  if (isReady(status)) return
  const outdated = [
    ...status.different.map((name) => `${name} has other keys`),
    ...status.missing,
    ...status.toExpand.map(({ number, name }) => `migration ${number} (${name})`),
  ]
  throw new Error(`the database is behind this version, run npm run migrate: ${outdated.join(', ')}`)
}
