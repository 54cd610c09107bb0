import { randomBytes } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { afterAll, inject } from 'vitest'

export type TestDatabase = {
  /** The engine's address, which names no database. */
  uri: string
  /** A name that no other test file has. */
  name: string
}

/** A fresh database for the test file that calls this at its top level, dropped at the file's end. */
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
