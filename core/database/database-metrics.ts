import type { Db, MongoClient } from 'mongodb'
// @ts-expect-error: the driver has no types for its internal modules.
import { Server } from 'mongodb/lib/sdam/server.js'
import { measureAtScrape } from '../../platform/observability/metrics.ts'
import type { CoreMetrics } from '../metrics.ts'
import { lastBackups } from './backup.ts'

/** A member of the database, which the driver calls for every command. */
interface DriverServer {
  topology: object
  command(operation: DriverOperation, ...rest: unknown[]): Promise<unknown>
}

interface DriverOperation {
  commandName: string
  command?: object
}

const observed = new WeakMap<object, CoreMetrics>()

/**
 * Measures the commands of a connected client with their wait for a connection. The driver's own events copy
 * each command and answer, which costs 60 to 90 µs of processor time.
 */
export function measureDatabase(client: MongoClient, metrics: CoreMetrics) {
  measureCommands()
  const { topology } = client as unknown as { topology?: object }
  if (!topology) throw new Error('the client is not connected')
  observed.set(topology, metrics)
}

export function countConnections(client: MongoClient, { databaseConnections }: CoreMetrics) {
  client.on('connectionCreated', () => databaseConnections.inc({ state: 'open' }))
  client.on('connectionClosed', () => databaseConnections.dec({ state: 'open' }))
  client.on('connectionCheckedOut', () => databaseConnections.inc({ state: 'in_use' }))
  client.on('connectionCheckedIn', () => databaseConnections.dec({ state: 'in_use' }))
}

/** Measuring is rare, because each of about 30 collections needs a command. */
const sizesEveryMs = 5 * 60_000

export function measureSizes(db: Db, metrics: CoreMetrics) {
  measureAtScrape(metrics.collectionBytes, sizesEveryMs, async () => {
    const { fsTotalSize, fsUsedSize } = await db.command({ dbStats: 1 })
    if (fsTotalSize > 0) {
      metrics.databaseDiskBytes.set({ state: 'all' }, fsTotalSize)
      metrics.databaseDiskBytes.set({ state: 'used' }, fsUsedSize)
    }
    for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
      const { totalSize } = await db.command({ collStats: name })
      metrics.collectionBytes.set({ collection: name }, totalSize)
    }
  })
}

const backupsEveryMs = 60_000

export function showBackups(db: Db, { backupSuccess }: CoreMetrics) {
  measureAtScrape(backupSuccess, backupsEveryMs, async () => {
    for (const [kind, at] of Object.entries(await lastBackups(db))) backupSuccess.set({ kind }, at.getTime() / 1000)
  })
}

let isDone = false

/** Replaces the driver's function for commands (driver version 7.8.0), once for all clients. */
function measureCommands() {
  if (isDone) return
  const { command } = Server.prototype as DriverServer
  if (typeof command !== 'function') throw new Error('this version of the MongoDB driver cannot be measured')
  isDone = true
  Server.prototype.command = async function (this: DriverServer, operation: DriverOperation, ...rest: unknown[]) {
    const metrics = observed.get(this.topology)
    if (!metrics) return command.call(this, operation, ...rest)
    const labels = { command: nameOf(operation) }
    const start = performance.now()
    try {
      const answer = await command.call(this, operation, ...rest)
      metrics.databaseDuration.observe(labels, (performance.now() - start) / 1000)
      return answer
    } catch (error) {
      metrics.databaseFailures.inc(labels)
      throw error
    }
  }
}

function nameOf({ commandName, command }: DriverOperation) {
  return command === undefined ? commandName : (Object.keys(command)[0] ?? commandName)
}
