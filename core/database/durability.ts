import type { Document, MongoClient, WriteConcernSettings } from 'mongodb'

/**
 * The write concern under which an acknowledged write survives the loss of any process, for the deployment that this
 * client is connected to: journaled, and on a replica set held by the majority.
 *
 * A server without a replica set must not be asked for the majority. It would take a majority's `j` as a wish: it
 * starts the flush of the journal and leaves the waiting for it to replication, which there is none of, so it
 * acknowledges what is still in memory. With `w: 1` it waits for the flush itself.
 * (`waitForWriteConcern` in the server's `write_concern.cpp`, the same in mongod and in the embedded engine.)
 *
 * Asked once: a server that is made a replica set later needs its clients started again.
 */
export async function durableWriteConcern(client: MongoClient): Promise<WriteConcernSettings> {
  return writeConcernFor(await client.db('admin').command({ hello: 1 }))
}

/** By a server's answer to `hello`. What is not plainly a single server gets the majority. */
export function writeConcernFor(hello: Document): WriteConcernSettings {
  const isSingle = hello.setName === undefined && hello.isreplicaset !== true && hello.msg !== 'isdbgrid'
  return isSingle ? { w: 1, journal: true } : { w: 'majority', journal: true }
}
