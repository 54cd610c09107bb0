import type { Document, MongoClient, WriteConcernSettings } from 'mongodb'

/**
 * Returns the write concern under which an acknowledged write survives the loss of any process:
 * journaled, and on a replica set confirmed by the majority.
 *
 * A server without a replica set must not get `majority`. With `majority`, only the replication
 * code waits for the journal flush. A server without replication would therefore acknowledge writes
 * that are only in memory. With `w: 1` the server waits for the flush. (See `waitForWriteConcern`
 * in the server's `write_concern.cpp`; the embedded engine behaves the same.)
 *
 * The write concern is determined only at the start. When a server becomes a replica set, restart
 * its clients.
 */
export async function durableWriteConcern(client: MongoClient): Promise<WriteConcernSettings> {
  return writeConcernFor(await client.db('admin').command({ hello: 1 }))
}

/**
 * Returns the write concern for a server with this response to `hello`. Every server except a
 * standalone one gets `majority`.
 */
export function writeConcernFor(hello: Document): WriteConcernSettings {
  const isSingle = hello.setName === undefined && hello.isreplicaset !== true && hello.msg !== 'isdbgrid'
  return isSingle ? { w: 1, journal: true } : { w: 'majority', journal: true }
}
