import type { Document, MongoClient, WriteConcernSettings } from 'mongodb'

/**
 * Returns the write concern under which acknowledged writes survive the loss of any process: journaled, and on
 * a replica set confirmed by the majority. Without a replica set, `majority` would acknowledge writes that are
 * only in memory, because only the replication code waits for the journal (`waitForWriteConcern` in the
 * server's `write_concern.cpp`). Clients of a server that becomes a replica set must be restarted.
 */
export async function durableWriteConcern(client: MongoClient): Promise<WriteConcernSettings> {
  return writeConcernFor(await client.db('admin').command({ hello: 1 }))
}

/** Returns the write concern for a server with this answer to the command `hello`. */
export function writeConcernFor(hello: Document): WriteConcernSettings {
  const isSingle = hello.setName === undefined && hello.isreplicaset !== true
  return isSingle ? { w: 1, journal: true } : { w: 'majority', journal: true }
}
