import { randomBytes } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { failOnClosedSockets } from '../../core/database/closed-sockets.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { type ReplicaSetOptions, startReplicaSet } from './replica-set.ts'

/**
 * Starts a double before the engine with this URI, for a test file. Returns the name of a database that is
 * dropped at the end of the file.
 */
export async function openDouble(engineUri: string, options: ReplicaSetOptions = {}) {
  // The product's clients do this, too.
  failOnClosedSockets()
  const set = await startReplicaSet(engineUri, options)
  const name = `test-${randomBytes(8).toString('hex')}`
  const client = new MongoClient(set.uri)
  atFileEnd(async () => {
    await client.db(name).dropDatabase()
    await client.close()
    await set.close()
  })
  return { set, name, client }
}
