import type { Document, MongoClient, WriteConcernSettings } from 'mongodb'

/**
 * Returns the write concern under which an acknowledged write survives the loss of any process:
 * journaled, and on a replica set confirmed by the majority.
 *
 * Do not use `majority` for a server without a replica set. With `majority`, only the replication
 * code waits for the journal flush. A server without replication would therefore acknowledge writes
 * that are only in memory. With `w: 1` the server waits for the flush. (See `waitForWriteConcern`
 * in the server's `write_concern.cpp`; the embedded engine behaves the same.)
 *
 * A client determines its write concern only once, at its start. When a server becomes a replica
 * set, restart its clients.
 */
export async function durableWriteConcern(client: MongoClient): Promise<WriteConcernSettings> {
  return writeConcernFor(await client.db('admin').command({ hello: 1 }))
}

/**
 * Returns the write concern for a server with this response to `hello`. The write concern is
 * `majority` for every server except a standalone server.
 */
export function writeConcernFor(hello: Document): WriteConcernSettings {
  const isSingle = hello.setName === undefined && hello.isreplicaset !== true
  return isSingle ? { w: 1, journal: true } : { w: 'majority', journal: true }
}
