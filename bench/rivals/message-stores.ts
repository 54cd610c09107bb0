import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { requirePeer } from './programs.ts'

/** Number of streams. With more, the server of Durable Streams answers 404 now and then. */
export const streamCount = 64

export interface BareMessage {
  clientOperationId: string
  body: string
  contentType: string
}

export interface MessageStore {
  /** Stores a message. Returns its id. */
  put(message: BareMessage): Promise<string>
  count(): Promise<number>
}

/** MongoDB with one journaled insert for each message. */
async function openMongo(uri: string): Promise<MessageStore> {
  const messages = await collectionOf(uri)
  return {
    put: async (message) => String((await messages.insertOne({ ...message, acceptedAt: new Date() })).insertedId),
    count: () => messages.countDocuments(),
  }
}

/** MongoDB with one insert for all messages that came during the one before. */
async function openGroupedMongo(uri: string): Promise<MessageStore> {
  const messages = await collectionOf(uri)
  const { add } = createBatcher(async (group: BareMessage[]) => {
    const documents = group.map((message) => ({ ...message, acceptedAt: new Date() }))
    const { insertedIds } = await messages.insertMany(documents, { ordered: false })
    return group.map((_, index) => ({ status: 'fulfilled' as const, value: String(insertedIds[index]) }))
  })
  return { put: add, count: () => messages.countDocuments() }
}

async function collectionOf(uri: string) {
  const client = await new MongoClient(uri).connect()
  return client.db('bare').collection('messages', { writeConcern: { w: 1, journal: true } })
}

/** PostgreSQL: one statement inserts and notifies. A second connection listens. */
async function openPostgres(connectionString: string): Promise<MessageStore> {
  const { Client, Pool } = requirePeer('pg')
  const pool = new Pool({ connectionString, max: 20 })
  await pool.query(
    'create table messages (id bigserial primary key, operation text not null, body text not null, type text not null, at timestamptz not null default now())',
  )
  const listener = new Client({ connectionString })
  await listener.connect()
  await listener.query('listen messages')
  const insert = {
    name: 'send',
    text: "with stored as (insert into messages (operation, body, type) values ($1, $2, $3) returning id) select id, pg_notify('messages', id::text) from stored",
  }
  return {
    async put({ clientOperationId, body, contentType }) {
      const { rows } = await pool.query({ ...insert, values: [clientOperationId, body, contentType] })
      return String(rows[0]?.id)
    },
    count: async () => Number((await pool.query('select count(*) as id from messages')).rows[0]?.id),
  }
}

/** Redis: one entry of a stream for each message. A second connection reads the stream. */
async function openRedis(port: string): Promise<MessageStore> {
  const redis = new Redis({ port: Number(port) })
  const reader = new Redis({ port: Number(port) })
  const follow = async (after: string): Promise<void> => {
    const found = await reader.xread('COUNT', 500, 'BLOCK', 0, 'STREAMS', 'messages', after)
    return follow(found?.[0]?.[1].at(-1)?.[0] ?? after)
  }
  void follow('$').catch(() => {})
  return {
    async put({ clientOperationId, body, contentType }) {
      const fields = ['operation', clientOperationId, 'body', body, 'type', contentType]
      return (await redis.xadd('messages', '*', ...fields)) ?? ''
    },
    count: () => redis.xlen('messages'),
  }
}

async function openNone(): Promise<MessageStore> {
  let count = 0
  return { put: async () => String(count++), count: async () => count }
}

export const messageStores = {
  none: openNone,
  mongodb: openMongo,
  'grouped mongodb': openGroupedMongo,
  postgres: openPostgres,
  redis: openRedis,
} satisfies Record<string, (place: string) => Promise<MessageStore>>
