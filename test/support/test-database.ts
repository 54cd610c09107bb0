import { randomBytes } from 'node:crypto'
import { type Db, MongoClient } from 'mongodb'
import { inject } from 'vitest'
import { atFileEnd } from './clean-up.ts'

export type TestDatabase = {
  /** URI of the database engine, without a database name. */
  uri: string
  /** Name of the database. No other running test file uses it. */
  name: string
}

/** Whether the database is the embedded engine itself. Its URI has the path of a socket. */
export const isEngine = ({ uri }: TestDatabase): boolean => uri.includes('.sock')

interface TestDatabaseOptions {
  /** Whether the database has no collections. Otherwise it may have empty ones. Default: false. */
  isNew?: boolean
}

/** Databases of ended test files of this worker. Their collections are empty. */
const free: string[] = []
let client: MongoClient | undefined
/** Emptying larger collections takes longer than creating them again. */
const maxEmptied = 10_000

/** The client of this worker, for tests that look into their database. It stays open. */
export const testClient = (): MongoClient => (client ??= new MongoClient(inject('mongodbUri')))

/**
 * Returns an empty database for a test file. Must be called at the top level of the file. Later
 * files of the same worker use the database again, because creating its indexes takes long. A file
 * that changes collections or indexes asks for a new one.
 */
export const testDatabase = ({ isNew = false }: TestDatabaseOptions = {}): TestDatabase => {
  const uri = inject('mongodbUri')
  const name = (isNew ? undefined : free.pop()) ?? `test-${randomBytes(8).toString('hex')}`
  // Runs after the steps that stop the cores. A core whose data vanishes ends its process.
  atFileEnd(async () => {
    const db = testClient().db(name)
    if (!isNew && (await isEmptied(db))) free.push(name)
    else await db.dropDatabase()
  })
  return { uri, name }
}

/** Empties all collections but `migrations`. Returns false if one is too large. */
async function isEmptied(db: Db): Promise<boolean> {
  const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name)
  const sizes = await db
    .aggregate<{ name: string; count: number }>([
      { $documents: [] },
      ...names.map((coll) => {
        const pipeline = [{ $collStats: { count: {} } }, { $project: { name: { $literal: coll }, count: 1 } }]
        return { $unionWith: { coll, pipeline } }
      }),
    ])
    .toArray()
  if (sizes.some(({ count }) => count > maxEmptied)) return false
  for (const { name, count } of sizes) if (count > 0 && name !== 'migrations') await db.collection(name).deleteMany({})
  return true
}
