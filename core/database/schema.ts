import { setTimeout as delay } from 'node:timers/promises'
import { type Collection, type Db, type IndexDescription, MongoServerError } from 'mongodb'
import { serviceVersion } from '../../platform/observability/process-metrics.ts'
import { connected, createMongoClient } from './client-options.ts'
import { collectionsOf, type MigrationDocument } from './collections.ts'
import { indexes } from './indexes.ts'
import { createMigrationLock, type OnWait } from './migration-lock.ts'
import { beginHistory } from './store-history.ts'

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

/** A number is never reused. The first one names the schema without changes. */
export const migrations: Migration[] = [{ number: 1, name: 'schema 1, of release 1.0.0-rc' }]

export interface SchemaStatus {
  /** Names of missing collections, and of missing indexes as `collection.index`. */
  missing: string[]
  toExpand: Migration[]
  /** Their `contract` step has not run. It may run only when no process of the previous version is left. */
  toContract: Migration[]
  /** Indexes, as `collection.index`, with other keys than in this version. */
  different: string[]
  /** Migrations of newer versions. */
  unknown: MigrationDocument[]
}

/** Size of the collection. A core with more unread wake-ups loses some and must read all its state again. */
const wakeupBytes = 16 * 1024 * 1024

export async function schemaStatus(db: Db, all = migrations): Promise<SchemaStatus> {
  const hasWakeups = await db.listCollections({ name: 'wakeups' }, { nameOnly: true }).hasNext()
  const present = await Promise.all(indexes.map(({ collection }) => indexKeys(db.collection(collection))))
  const missing = hasWakeups ? [] : ['wakeups']
  const different: string[] = []
  for (const [index, { collection, wanted }] of indexes.entries())
    for (const { name, key } of wanted) {
      const found = present[index]?.get(name)
      if (found !== JSON.stringify(key)) (found === undefined ? missing : different).push(`${collection}.${name}`)
    }
  return { missing, different, ...(await pendingMigrations(db, all)) }
}

async function pendingMigrations(db: Db, all: Migration[]) {
  const records = new Map((await recordsOf(db).find().toArray()).map((record) => [record._id, record]))
  return {
    unknown: [...records.values()].filter(({ _id }) => !all.some(({ number }) => number === _id)),
    toExpand: all.filter(({ number }) => !records.has(number)),
    toContract: all.filter(({ number, contract }) => contract && !records.get(number)?.contractedAt),
  }
}

/** Whether this version can use the database. */
export const isReady = ({ missing, toExpand, different }: SchemaStatus): boolean =>
  missing.length + toExpand.length + different.length === 0

/** Throws if a newer version has removed data that this version needs. */
export function requireNotNewer({ unknown }: Pick<SchemaStatus, 'unknown'>) {
  const last = unknown.filter(({ contractedAt }) => contractedAt).at(-1)
  if (!last) return
  const version = last.version === undefined ? 'a newer version' : `version ${last.version}`
  throw new Error(
    `the database needs ${version} or newer: its migration ${last._id} (${last.name}) has removed what this version uses; start that version, or restore a backup`,
  )
}

interface MigrateOptions {
  contract?: boolean
  now?: () => number
  all?: Migration[]
  onWait?: OnWait
}

/**
 * Creates missing collections and indexes, and runs pending `expand` steps. Processes of the previous version
 * may run meanwhile, and several processes may migrate at once. With `contract`, also runs `contract` steps.
 */
export async function migrate(
  db: Db,
  { contract = false, now = Date.now, all = migrations, onWait }: MigrateOptions = {},
): Promise<SchemaStatus> {
  requireNotNewer(await pendingMigrations(db, all))
  await createWakeups(db)
  await createIndexes(db)
  const pending = await pendingMigrations(db, all)
  if (pending.toExpand.length === 0 && !(contract && pending.toContract.length > 0))
    return { missing: [], different: [], ...pending }
  await createMigrationLock(db, now, onWait).holding(async (check) => {
    // Another process may have migrated while this one waited for the lock.
    const { toExpand, toContract } = await pendingMigrations(db, all)
    for (const { number, name, expand } of toExpand) {
      await check()
      await namingMigration(number, name, async () => expand?.(db))
      await recordsOf(db).updateOne({ _id: number }, { $set: { name, expandedAt: new Date(now()) } }, { upsert: true })
    }
    for (const { number, name, contract: clear } of contract ? toContract : []) {
      await check()
      await namingMigration(number, name, async () => clear?.(db))
      const contractedAt = new Date(now())
      await recordsOf(db).updateOne({ _id: number }, { $set: { contractedAt, version: serviceVersion() } })
    }
  })
  return { missing: [], different: [], ...(await pendingMigrations(db, all)) }
}

/** Adds the migration that failed to the message of its error. Keeps the class of the error. */
async function namingMigration(number: number, name: string, run: () => Promise<unknown>) {
  try {
    await run()
  } catch (error) {
    if (error instanceof Error) error.message = `migration ${number} (${name}) failed: ${error.message}`
    throw error
  }
}

const recordsOf = (db: Db) => db.collection<MigrationDocument>('migrations')

async function indexKeys(collection: Collection): Promise<Map<string, string>> {
  try {
    return new Map((await collection.indexes()).map(({ name = '', key }) => [name, JSON.stringify(key)]))
  } catch (error) {
    if (hasCode(error, 'NamespaceNotFound')) return new Map()
    throw error
  }
}

async function createWakeups(db: Db) {
  try {
    await db.createCollection('wakeups', { capped: true, size: wakeupBytes })
  } catch (error) {
    if (!hasCode(error, 'NamespaceExists')) throw error
  }
}

const createIndexes = (db: Db) =>
  Promise.all(
    indexes.map(async ({ collection, wanted }) => {
      const create = () => db.collection(collection).createIndexes(wanted as IndexDescription[], quorumOf(db))
      await retryConflicts(create).catch((error: unknown) => {
        if (error instanceof Error) error.message = `the indexes of ${collection} cannot be created: ${error.message}`
        throw error
      })
    }),
  )

/** Without the option, a build waits also for stopped members of a replica set. A single server rejects it. */
const quorumOf = ({ writeConcern }: Db) => (writeConcern?.w === 'majority' ? { commitQuorum: 'majority' } : {})

/** Retries a rejected build, because another process may build the same index at that moment. */
async function retryConflicts(attempt: () => Promise<unknown>) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (tries >= 20 || !hasCode(error, ...conflicts)) throw error
      await delay(50 * tries)
    }
  }
}

const conflicts = [
  'ConflictingOperationInProgress',
  'IndexBuildAborted',
  'IndexBuildAlreadyInProgress',
  'NamespaceExists',
  'WriteConflict',
]

const hasCode = (error: unknown, ...names: string[]) =>
  error instanceof MongoServerError && names.includes(String(error.codeName))

export type SchemaTools = Awaited<ReturnType<typeof openSchemaTools>>

/** Connects to a database without changing it. Calls on this connection have no timeout. */
export async function openSchemaTools({ uri, name, timeoutMs }: { uri: string; name: string; timeoutMs: number }) {
  const client = createMongoClient(uri, { appName: 'service-migrate', timeoutMs, ignoreUndefined: true })
  return connected(client, (writeConcern) => {
    const db = client.db(name, { writeConcern })
    return {
      collections: collectionsOf(db),
      status: () => schemaStatus(db),
      migrate: (options: { contract: boolean; onWait?: OnWait }) => migrate(db, options),
      beginHistory: () => beginHistory(db),
      close: () => client.close(),
    }
  })
}
