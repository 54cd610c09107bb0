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
/** Emptying larger collections takes longer than creating them again. */
const maxEmptied = 10_000

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
    const client = new MongoClient(uri)
    const db = client.db(name)
    if (!isNew && (await isEmptied(db))) free.push(name)
    else await db.dropDatabase()
    await client.close()
  })
  return { uri, name }
}

/** Empties all collections but `migrations`. Returns false if one is too large. */
async function isEmptied(db: Db): Promise<boolean> {
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
    if (name === 'migrations') continue
    const count = await db.collection(name).estimatedDocumentCount()
    if (count > maxEmptied) return false
    if (count > 0) await db.collection(name).deleteMany({})
  }
  return true
}
