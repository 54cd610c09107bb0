import type { Db } from 'mongodb'
import type { Collections } from './collections.ts'

type ShardedName = keyof Collections | 'screenshots.chunks' | 'screenshots.files'

interface ShardPlan {
  collection: ShardedName
  /** Shard key. Without a shard key, the collection stays on one shard. */
  key?: Record<string, 1 | 'hashed'>
  /**
   * Whether the shard key is unique. GridFS creates its unique index only if there is no index with these
   * keys, and sharding an empty collection creates one.
   */
  unique?: true
  why: string
}

const hashedId = { _id: 'hashed' } as const

/**
 * Distribution of each collection over a sharded cluster. A unique index holds across shards only
 * if it begins with the whole shard key, which must not be hashed. Collections that cannot satisfy
 * this stay on one shard. There are no zones, because ids are random: a range of ids says nothing
 * about the region of its visitors. To keep data in a region, run a separate service there.
 */
export const shardPlans: ShardPlan[] = [
  {
    collection: 'events',
    key: { conversationId: 1 },
    why: "a conversation's log is read and written in one place; both unique indexes begin with the whole key",
  },
  { collection: 'sessions', key: hashedId, why: 'every call finds one by its id' },
  { collection: 'conversations', key: hashedId, why: 'found by id; an inbox page queries every shard' },
  { collection: 'idempotency', key: hashedId, why: 'claimed and read by the hash of its key alone' },
  {
    collection: 'searchEntries',
    key: { _id: 1 },
    why: 'ids begin with the conversation, so the entries of a conversation are together; a search queries every shard',
  },
  {
    collection: 'feedEntries',
    key: { workspaceId: 1 },
    why: 'the feed of a workspace is written and read in one place; its unique indexes begin with the key',
  },
  { collection: 'nonces', key: hashedId, why: 'consumed by its hash, which is the id' },
  { collection: 'subjects', key: hashedId, why: 'found by id' },
  { collection: 'visitors', key: hashedId, why: 'found by id' },
  {
    collection: 'screenshots.chunks',
    key: { files_id: 1, n: 1 },
    unique: true,
    why: 'the unique index of GridFS; most bytes of the database are here',
  },
  { collection: 'screenshots.files', why: 'one small document per screenshot' },
  { collection: 'typing', why: 'contains only current typing' },
  {
    collection: 'commands',
    why: 'unique by (sessionId, operationId) but found by id: with either as shard key, the other would query every shard',
  },
  {
    collection: 'leads',
    why: "unique by the form's operation, which is not a prefix of anything that leads are found by",
  },
  {
    collection: 'deliveries',
    why: 'unique by the key of each request, in a list; the queue is read by time across all of them',
  },
  { collection: 'leadSubscriptions', why: 'few; joined with deliveries, so on the same shard' },
  { collection: 'wakeups', why: 'a capped collection cannot be sharded' },
  { collection: 'workspaces', why: 'few' },
  { collection: 'connections', why: 'few' },
  { collection: 'installations', why: 'few' },
  { collection: 'suppressions', key: hashedId, why: 'looked up by id' },
  { collection: 'pictures', key: hashedId, why: 'found by id, which each page of a visitor does' },
  { collection: 'policyChanges', why: 'few: one per change by an operator' },
  { collection: 'networkBans', why: 'few' },
  { collection: 'erasures', why: 'few' },
  { collection: 'removals', why: 'few' },
  { collection: 'keys', why: 'one' },
  { collection: 'searchProgress', why: 'one' },
  { collection: 'migrations', why: 'few' },
  { collection: 'consoleSessions', key: hashedId, why: 'found by the hash of their secret, which is the id' },
  { collection: 'signInLinks', key: hashedId, why: 'taken by the hash of their secret, which is the id' },
  { collection: 'signInAttempts', key: hashedId, why: 'taken by the hash of their state, which is the id' },
  { collection: 'operatorPresence', why: 'one small document per core' },
]

/** Returns the commands for a cluster's router, in order. */
export function shardCommands(database: string): Record<string, unknown>[] {
  return shardPlans.flatMap(({ collection, key, unique }) =>
    key ? [{ shardCollection: `${database}.${collection}`, key, ...(unique && { unique }) }] : [],
  )
}

/** Whether the server is the router of a sharded cluster. */
export async function isRouter(db: Db): Promise<boolean> {
  return (await db.admin().command({ hello: 1 })).msg === 'isdbgrid'
}

/**
 * Applies the plan to a sharded cluster. Collections that are already sharded stay unchanged.
 * Returns false if the server is not a router.
 */
export async function shard(db: Db): Promise<boolean> {
  if (!(await isRouter(db))) return false
  const admin = db.client.db('admin')
  for (const command of shardCommands(db.databaseName)) await admin.command(command)
  return true
}
