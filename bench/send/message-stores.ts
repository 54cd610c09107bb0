import type { Server } from 'node:http'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import { attachEngine } from '../../dev/engine/engine.ts'
import { type PgPool, requirePeer } from '../peers.ts'
import { streamCount } from './sender-settings.ts'

export interface BareMessage {
  clientOperationId: string
  body: string
  contentType: string
}

/** Where a bare server keeps its messages. */
export interface MessageStore {
  /** Stores a message. Returns its id. */
  put(message: BareMessage): Promise<string>
  count(): Promise<number>
}

/** MongoDB on the embedded engine: one journaled insert for each message. */
async function openMongo(dataDir: string): Promise<MessageStore> {
  const engine = await attachEngine({ dataDir, logger: { info() {}, warn: console.warn, error: console.error } })
  const client = await new MongoClient(engine.uri).connect()
  const messages = client.db('bare').collection('messages', { writeConcern: { w: 1, journal: true } })
  return {
    put: async (message) => String((await messages.insertOne({ ...message, acceptedAt: new Date() })).insertedId),
    count: () => messages.countDocuments(),
  }
}

/** PostgreSQL: one statement inserts and notifies. A second connection listens. */
async function openPostgres(connectionString: string): Promise<MessageStore> {
  const { Client, Pool } = requirePeer<PgPool>('pg')
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

interface SocketIo {
  Server: new (server: Server, options: object) => { to(room: string): { emit(event: string, data: object): unknown } }
}

/** Socket.IO: keeps messages in memory for clients that reconnect. */
async function openSocketIo(_: string, server: Server): Promise<MessageStore> {
  const { Server } = requirePeer<SocketIo>('socket.io')
  const io = new Server(server, { connectionStateRecovery: {} })
  let sent = 0
  return {
    async put(message) {
      sent += 1
      io.to(`visitor-${sent % streamCount}`).emit('message', message)
      return String(sent)
    },
    count: async () => sent,
  }
}

export const messageStores = {
  mongodb: openMongo,
  postgres: openPostgres,
  redis: openRedis,
  'socket.io': openSocketIo,
} satisfies Record<string, (place: string, server: Server) => Promise<MessageStore>>
