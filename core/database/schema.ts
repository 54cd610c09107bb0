import { setTimeout as delay } from 'node:timers/promises'
import { type Collection, type Db, type Document, MongoServerError } from 'mongodb'
import { serviceVersion } from '../../platform/observability/process-metrics.ts'
import { type IndexPlan, indexes } from './indexes.ts'
import { createMigrationLock, type OnWait } from './migration-lock.ts'
import { type Migration, type MigrationDocument, migrations } from './migrations.ts'

export interface SchemaStatus {
  /** Collections, and indexes as `collection.index`. */
  missing: string[]
  toExpand: Migration[]
  /** `contract` may run only when no process of the previous version is left. */
  toContract: Migration[]
  /** Indexes with other keys than in this version. */
  different: string[]
  unknown: MigrationDocument[]
}

/** A core with more unread wake-ups loses some and must read all its state again. */
const wakeupBytes = 16 * 1024 * 1024

export async function schemaStatus(db: Db, all = migrations): Promise<SchemaStatus> {
  const plans = [...Map.groupBy(indexes, ([collection]) => collection)]
  const [hasWakeups, lacking, pending] = await Promise.all([
    db.listCollections({ name: 'wakeups' }, { nameOnly: true }).hasNext(),
    Promise.all(
      plans.map(async ([collection, wanted]) => {
        const there = await indexKeys(db.collection(collection))
        return wanted.map(([, key, { name }]) => ({
          name: `${collection}.${name}`,
          isMissing: !there.has(name),
          isDifferent: there.has(name) && there.get(name) !== JSON.stringify(key),
        }))
      }),
    ),
    pendingMigrations(db, all),
  ])
  const namesOf = (which: 'isMissing' | 'isDifferent') =>
    lacking.flat().flatMap((index) => (index[which] ? [index.name] : []))
  const missing = [...(hasWakeups ? [] : ['wakeups']), ...namesOf('isMissing')]
  return { missing, different: namesOf('isDifferent'), ...pending }
}

type PendingMigrations = Pick<SchemaStatus, 'toExpand' | 'toContract' | 'unknown'>

async function pendingMigrations(db: Db, all: Migration[]): Promise<PendingMigrations> {
  const records = new Map((await recordsOf(db).find().toArray()).map((record) => [record._id, record]))
  return {
    unknown: [...records.values()].filter(({ _id }) => !all.some(({ number }) => number === _id)),
    toExpand: all.filter(({ number }) => !records.has(number)),
    toContract: all.filter(({ number, contract }) => contract && !records.get(number)?.contractedAt),
  }
}

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
 * may run, and several may migrate at once. With `contract`, also runs these steps.
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

/** Keeps the class of the error. */
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

async function createIndexes(db: Db) {
  const plans = Map.groupBy(indexes, ([collection]) => collection)
  await Promise.all(
    [...plans].map(async ([collection, specifications]) => {
      const wanted = specifications.map(toDescription)
      await retryConflicts(() => db.collection(collection).createIndexes(wanted, quorumOf(db))).catch(
        (error: unknown) => {
          if (error instanceof Error) error.message = `the indexes of ${collection} cannot be created: ${error.message}`
          throw error
        },
      )
    }),
  )
}

/** By default, an index build waits also for stopped members of a replica set. A single server rejects the option. */
const quorumOf = ({ writeConcern }: Db) => (writeConcern?.w === 'majority' ? { commitQuorum: 'majority' } : {})

const toDescription = ([, key, options]: IndexPlan) =>
  ({ key, ...options }) as Parameters<Collection<Document>['createIndexes']>[0][number]

/** Another process may build the same index at that moment. */
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

function hasCode(error: unknown, codeName: string) {
  return error instanceof MongoServerError && error.codeName === codeName
}
