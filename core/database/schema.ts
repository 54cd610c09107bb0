import { setTimeout as delay } from 'node:timers/promises'
import { type Collection, type Db, type Document, MongoServerError } from 'mongodb'
import type { MigrationDocument } from '../mongodb/migration-records.ts'
import { type IndexPlan, indexes } from './indexes.ts'
import { createMigrationLock } from './migration-lock.ts'
import { type Migration, migrations, type Sealer } from './migrations.ts'

/** Differences between a database and the schema of this version. */
export interface SchemaStatus {
  /** Names of missing collections, and of missing indexes as `collection.index`. */
  missing: string[]
  toExpand: Migration[]
  /**
   * Migrations whose `contract` step has not run. This step may run only when no process of the
   * previous version is left.
   */
  toContract: Migration[]
}

/**
 * Size of the wake-up collection in bytes. A core that has more unread wake-ups than this loses
 * some of them and must read all its state again.
 */
const wakeupBytes = 16 * 1024 * 1024

export async function schemaStatus(db: Db): Promise<SchemaStatus> {
  const plans = [...Map.groupBy(indexes, ([collection]) => collection)]
  const [hasWakeups, lacking, pending] = await Promise.all([
    db.listCollections({ name: 'wakeups' }, { nameOnly: true }).hasNext(),
    Promise.all(
      plans.map(async ([collection, wanted]) => {
        const there = await indexNames(db.collection(collection))
        return wanted.flatMap(([, , { name }]) => (there.has(name) ? [] : [`${collection}.${name}`]))
      }),
    ),
    pendingMigrations(db),
  ])
  return { missing: [...(hasWakeups ? [] : ['wakeups']), ...lacking.flat()], ...pending }
}

async function pendingMigrations(db: Db): Promise<Pick<SchemaStatus, 'toExpand' | 'toContract'>> {
  const records = new Map((await recordsOf(db).find().toArray()).map((record) => [record._id, record]))
  return {
    toExpand: migrations.filter(({ number }) => !records.has(number)),
    toContract: migrations.filter(({ number, contract }) => contract && !records.get(number)?.contractedAt),
  }
}

/** Whether this version of the core can use the database. */
export const isReady = ({ missing, toExpand }: SchemaStatus): boolean => missing.length === 0 && toExpand.length === 0

interface MigrateOptions {
  contract?: boolean
  now?: () => number
  /** Encrypts with the current secret key. Only contract steps with something to encrypt need it. */
  sealer?: Sealer
}

const noSealer: Sealer = {
  seal() {
    throw new Error('SECRET_KEYS is missing: a migration encrypts stored data')
  },
}

/**
 * Creates missing collections and indexes and runs the `expand` step of pending migrations.
 * Processes of the previous version may run at the same time, and several processes may migrate at
 * once. With `contract`, also runs their `contract` step. Also runs it on an empty database, because
 * no process of the previous version uses that.
 */
export async function migrate(
  db: Db,
  { contract: isAsked = false, now = Date.now, sealer = noSealer }: MigrateOptions = {},
): Promise<SchemaStatus> {
  const contract = isAsked || (await isEmpty(db))
  await createWakeups(db)
  await createIndexes(db)
  const pending = await pendingMigrations(db)
  if (pending.toExpand.length === 0 && !(contract && pending.toContract.length > 0)) return { missing: [], ...pending }
  await createMigrationLock(db, now).holding(async (check) => {
    // Another process may have migrated while this one waited for the lock.
    const { toExpand, toContract } = await pendingMigrations(db)
    for (const { number, name, expand } of toExpand) {
      await check()
      await expand(db)
      await recordsOf(db).updateOne({ _id: number }, { $set: { name, expandedAt: new Date(now()) } }, { upsert: true })
    }
    for (const { number, contract: clear } of contract ? toContract : []) {
      await check()
      await clear?.(db, sealer)
      await recordsOf(db).updateOne({ _id: number }, { $set: { contractedAt: new Date(now()) } })
    }
  })
  return { missing: [], ...(await pendingMigrations(db)) }
}

/** Collections that a migration itself fills. */
const ownCollections = ['locks', 'migrations', 'wakeups']

/**
 * Whether the database has no documents. Collections and indexes may exist, because another process
 * may be migrating, or an earlier one may have died.
 */
async function isEmpty(db: Db): Promise<boolean> {
  for await (const { name } of db.listCollections({}, { nameOnly: true }))
    if (!ownCollections.includes(name) && (await db.collection(name).findOne({}, { projection: { _id: 1 } })))
      return false
  return true
}

const recordsOf = (db: Db) => db.collection<MigrationDocument>('migrations')

async function indexNames(collection: Collection): Promise<Set<string>> {
  try {
    return new Set((await collection.indexes()).map(({ name = '' }) => name))
  } catch (error) {
    if (hasCode(error, 'NamespaceNotFound')) return new Set()
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

async function createIndexes(db: Db) {
  const plans = Map.groupBy(indexes, ([collection]) => collection)
  await Promise.all(
    [...plans].map(async ([collection, specifications]) => {
      const wanted = specifications.map(toDescription)
      await retryConflicts(() => db.collection(collection).createIndexes(wanted, quorumOf(db)))
    }),
  )
}

/**
 * By default, an index build waits for every member of a replica set, even for a stopped one. A single
 * server rejects the option.
 */
const quorumOf = ({ writeConcern }: Db) => (writeConcern?.w === 'majority' ? { commitQuorum: 'majority' } : {})

const toDescription = ([, key, options]: IndexPlan) =>
  ({ key, ...options }) as Parameters<Collection<Document>['createIndexes']>[0][number]

/**
 * Retries when the database rejects an index because another process builds the same index at that
 * moment.
 */
async function retryConflicts(attempt: () => Promise<unknown>) {
  for (let tries = 1; ; tries += 1) {
    try {
      await attempt()
      return
    } catch (error) {
      const transient = [
        'ConflictingOperationInProgress',
        'IndexBuildAborted',
        'IndexBuildAlreadyInProgress',
        'NamespaceExists',
        'WriteConflict',
      ]
      if (tries >= 20 || !transient.some((name) => hasCode(error, name))) throw error
      await delay(50 * tries)
    }
  }
}

function hasCode(error: unknown, codeName: string): boolean {
  return error instanceof MongoServerError && error.codeName === codeName
}
