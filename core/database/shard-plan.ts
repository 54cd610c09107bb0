import type { Db } from 'mongodb'
import type { Collections } from './database.ts'

export type ShardedName = keyof Collections | 'screenshots.chunks' | 'screenshots.files'

export interface ShardPlan {
  collection: ShardedName
  /** Left out: the collection stays whole, on one shard. */
  key?: Record<string, 1 | 'hashed'>
  why: string
}

const hashedId = { _id: 'hashed' } as const

/**
 * How each collection is spread over a sharded cluster. A unique index holds over shards only where it begins with the
 * whole shard key, and that is not a hashed one: what cannot promise that stays whole.
 * There are no zones: ids are random, so a range of them says nothing of where its visitors are. Who must keep data in a
 * region runs a service there.
 */
export const shardPlans: ShardPlan[] = [
  {
    collection: 'events',
    key: { conversationId: 1 },
    why: 'a conversation’s log is read and written in one place; both unique indexes begin with the whole key',
  },
  { collection: 'sessions', key: hashedId, why: 'each call looks one up by its id' },
  { collection: 'conversations', key: hashedId, why: 'looked up by id; an inbox’s page asks every shard' },
  { collection: 'idempotency', key: hashedId, why: 'claimed and read by its key’s hash alone' },
  { collection: 'nonces', key: hashedId, why: 'used up by its hash, which is the id' },
  { collection: 'subjects', key: hashedId, why: 'looked up by id' },
  { collection: 'visitors', key: hashedId, why: 'looked up by id' },
  {
    collection: 'screenshots.chunks',
    key: { files_id: 1, n: 1 },
    why: 'the unique index of GridFS; most bytes of the database are here',
  },
  { collection: 'screenshots.files', why: 'one small document a screenshot' },
  { collection: 'typing', why: 'holds only who types now' },
  {
    collection: 'commands',
    why: 'unique by (sessionId, operationId), but found by id: sharded by either, the other would ask every shard',
  },
  {
    collection: 'leads',
    why: 'unique by the form’s operation, which is no prefix of anything that leads are found by',
  },
  {
    collection: 'deliveries',
    why: 'unique by each request’s key, in a list; the queue is read in the order of time over all of them',
  },
  { collection: 'leadSubscriptions', why: 'few; joined with deliveries, so on the same shard' },
  { collection: 'wakeups', why: 'a capped collection cannot be sharded' },
  { collection: 'workspaces', why: 'few' },
  { collection: 'connections', why: 'few' },
  { collection: 'installations', why: 'few' },
  { collection: 'erasures', why: 'few' },
  { collection: 'keys', why: 'one' },
]

/** The commands that a cluster is given, in order. */
export function shardCommands(database: string): Record<string, unknown>[] {
  return shardPlans.flatMap(({ collection, key }) =>
    key ? [{ shardCollection: `${database}.${collection}`, key }] : [],
  )
}

/** Sets the plan, on a sharded cluster; what is set already stays. False where the server is no router of one. */
export async function shard(db: Db): Promise<boolean> {
  const admin = db.client.db('admin')
  const { msg } = await admin.command({ hello: 1 })
  if (msg !== 'isdbgrid') return false
  for (const command of shardCommands(db.databaseName)) await admin.command(command)
  return true
}
