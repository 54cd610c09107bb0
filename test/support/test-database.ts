import { randomBytes } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { afterAll, inject } from 'vitest'

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
  afterAll(async () => {
    const client = new MongoClient(uri)
    await client.db(name).dropDatabase()
    await client.close()
  })
  return { uri, name }
}
