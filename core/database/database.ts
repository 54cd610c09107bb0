import { type Collection, type Db, GridFSBucket, MongoClient } from 'mongodb'
import type { CommandDocument } from '../commands/command-store.ts'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { TypingDocument } from '../conversations/typing-store.ts'
import type { DeliveryDocument } from '../deliveries/delivery-store.ts'
import type { LeadSubscriptionDocument } from '../deliveries/lead-subscription-store.ts'
import type { IdempotencyDocument } from '../idempotency/idempotency-store.ts'
import type { KeyDocument } from '../keys/key-store.ts'
import type { LeadDocument } from '../leads/lead-store.ts'
import type { EventDocument } from '../log/event-store.ts'
import type { WakeupDocument } from '../log/wakeup-store.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import type { ErasureDocument } from '../privacy/erasure-store.ts'
import type { NonceDocument } from '../visitors/nonce-store.ts'
import type { SessionDocument, VisitorDocument } from '../visitors/session-store.ts'
import type { SubjectDocument } from '../visitors/subject-store.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from '../workspaces/workspace-store.ts'
import { failOnClosedSockets } from './closed-sockets.ts'
import { measureDatabase } from './database-metrics.ts'
import { durableWriteConcern } from './durability.ts'
import { createFileNudge, type Nudge } from './nudge.ts'
import { isReady, migrate, schemaStatus } from './schema.ts'

export interface Collections {
  workspaces: Collection<WorkspaceDocument>
  connections: Collection<ConnectionDocument>
  installations: Collection<InstallationDocument>
  sessions: Collection<SessionDocument>
  visitors: Collection<VisitorDocument>
  subjects: Collection<SubjectDocument>
  nonces: Collection<NonceDocument>
  conversations: Collection<ConversationDocument>
  events: Collection<EventDocument>
  idempotency: Collection<IdempotencyDocument>
  commands: Collection<CommandDocument>
  leads: Collection<LeadDocument>
  leadSubscriptions: Collection<LeadSubscriptionDocument>
  deliveries: Collection<DeliveryDocument>
  typing: Collection<TypingDocument>
  wakeups: Collection<WakeupDocument>
  erasures: Collection<ErasureDocument>
  keys: Collection<KeyDocument>
}

export interface Database {
  collections: Collections
  screenshots: GridFSBucket
  /** Only if the server is reached through a unix socket, and so by this machine alone. */
  nudge: Nudge | undefined
  /** Resolves when the database responds; rejects after a second without a response. */
  ping(): Promise<void>
  close(): Promise<void>
}

export interface DatabaseSettings {
  uri: string
  name: string
  timeoutMs: number
  /**
   * Creates missing collections and indexes, safe in several processes at once. If false, rejects
   * an outdated database.
   */
  migrates?: boolean
  metrics?: CoreMetrics
}

/**
 * Connects, and creates or checks collections and indexes. Every acknowledged write is journaled,
 * and on a replica set held by the majority.
 */
export async function openDatabase({ migrates = true, ...settings }: DatabaseSettings): Promise<Database> {
  failOnClosedSockets()
  const client = new MongoClient(settings.uri, {
    appName: 'service-core',
    readPreference: 'primary',
    serverSelectionTimeoutMS: settings.timeoutMs,
    connectTimeoutMS: settings.timeoutMs,
    socketTimeoutMS: settings.timeoutMs,
    waitQueueTimeoutMS: settings.timeoutMs,
    ignoreUndefined: true,
    maxPoolSize: 32,
    monitorCommands: true,
  })
  measureDatabase(client, settings.metrics ?? createCoreMetrics())
  try {
    await client.connect()
    const db = client.db(settings.name, { writeConcern: await durableWriteConcern(client) })
    if (migrates) await migrate(db)
    else await requireReady(db)
    const { socketPath } = client.options.hosts[0] ?? {}
    const nudge = socketPath === undefined ? undefined : createFileNudge(`${socketPath}.${settings.name}.nudges`)
    return {
      collections: collectionsOf(db),
      screenshots: new GridFSBucket(db, { bucketName: 'screenshots' }),
      nudge,
      async ping() {
        await db.command({ ping: 1, maxTimeMS: 1000 })
      },
      async close() {
        nudge?.close()
        await client.close()
      },
    }
  } catch (error) {
    await client.close()
    throw error
  }
}

async function requireReady(db: Db) {
  const status = await schemaStatus(db)
  if (isReady(status)) return
  const outdated = [...status.missing, ...status.toExpand.map(({ number, name }) => `migration ${number} (${name})`)]
  throw new Error(`the database is behind this version, run npm run migrate: ${outdated.join(', ')}`)
}

export function collectionsOf(db: Db): Collections {
  return {
    workspaces: db.collection('workspaces'),
    connections: db.collection('connections'),
    installations: db.collection('installations'),
    sessions: db.collection('sessions'),
    visitors: db.collection('visitors'),
    subjects: db.collection('subjects'),
    nonces: db.collection('nonces'),
    conversations: db.collection('conversations'),
    events: db.collection('events'),
    idempotency: db.collection('idempotency'),
    commands: db.collection('commands'),
    leads: db.collection('leads'),
    leadSubscriptions: db.collection('leadSubscriptions'),
    deliveries: db.collection('deliveries'),
    typing: db.collection('typing'),
    wakeups: db.collection('wakeups'),
    erasures: db.collection('erasures'),
    keys: db.collection('keys'),
  }
}
