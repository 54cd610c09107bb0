import { randomBytes } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { inject } from 'vitest'
import { atFileEnd } from './clean-up.ts'

export type TestDatabase = {
  /** URI of the database engine, without a database name. */
  uri: string
  /** Name of the database, unique to the test file. */
  name: string
}

/**
 * Returns an empty database for a test file. The database is dropped at the end of the file. Must
 * be called at the top level of the file.
 */
export const testDatabase = (): TestDatabase => {
  const uri = inject('mongodbUri')
  const name = `test-${randomBytes(8).toString('hex')}`
  // Runs after the steps that stop the cores. A core whose data vanishes ends its process.
  atFileEnd(async () => {
    const client = new MongoClient(uri)
    await client.db(name).dropDatabase()
    await client.close()
  })
  return { uri, name }
}
