import type { Document, MongoClient, WriteConcernSettings } from 'mongodb'

/**
 * The write concern under which an acknowledged write survives the loss of any process: journaled,
 * and on a replica set held by the majority.
 *
 * A server without a replica set must not get `majority`. It would then start the journal flush but
 * leave the waiting to replication, which it does not have, and acknowledge writes that are only in
 * memory. With `w: 1` it waits for the flush. (`waitForWriteConcern` in the server's
 * `write_concern.cpp`, the same in mongod and in the embedded engine.)
 *
 * Determined once: restart the clients of a server that becomes a replica set.
 */
export async function durableWriteConcern(client: MongoClient): Promise<WriteConcernSettings> {
  return writeConcernFor(await client.db('admin').command({ hello: 1 }))
}

/**
 * Based on a server's response to `hello`. Only a plain single server does not get the majority.
 */
export function writeConcernFor(hello: Document): WriteConcernSettings {
  const isSingle = hello.setName === undefined && hello.isreplicaset !== true && hello.msg !== 'isdbgrid'
  return isSingle ? { w: 1, journal: true } : { w: 'majority', journal: true }
}
