import { setTimeout as delay } from 'node:timers/promises'
import {
  type Collection,
  type CreateIndexesOptions,
  type Db,
  type Document,
  GridFSBucket,
  type IndexSpecification,
  MongoClient,
  MongoServerError,
} from 'mongodb'
import { failOnClosedSockets } from './closed-sockets.ts'
import type { CommandDocument } from './commands.ts'
import type { ConversationDocument } from './conversations.ts'
import type { DeliveryDocument } from './deliveries.ts'
import { durableWriteConcern } from './durability.ts'
import type { EventDocument } from './events.ts'
import type { IdempotencyDocument } from './idempotency.ts'
import type { LeadSubscriptionDocument } from './lead-subscriptions.ts'
import type { LeadDocument } from './leads.ts'
import type { NonceDocument } from './nonces.ts'
import { createFileNudge, type Nudge } from './nudge.ts'
import type { SessionDocument, VisitorDocument } from './sessions.ts'
import type { SubjectDocument } from './subjects.ts'
import type { TypingDocument } from './typing.ts'
import type { WakeupDocument } from './wakeups.ts'
import type { ConnectionDocument, InstallationDocument, WorkspaceDocument } from './workspaces.ts'

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
}

export interface Database {
  collections: Collections
  screenshots: GridFSBucket
  /** Only where the server is reached through a unix socket, and so by this machine alone. */
  nudge: Nudge | undefined
  /** Resolves when the database answers; throws when it does not within a second. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Bytes of the wake-up collection: a tail that falls further behind than this starts over. */
const wakeupBytes = 16 * 1024 * 1024

type IndexPlan = [
  collection: keyof Collections,
  keys: IndexSpecification,
  options: CreateIndexesOptions & { name: string },
]

const indexes: IndexPlan[] = [
  // The log's order: one event for each place in a conversation.
  ['events', { conversationId: 1, sequence: 1 }, { name: 'by_sequence', unique: true }],
  // One event for each logical operation. Prefixed with the conversation, so that it can stay unique when sharded.
  [
    'events',
    { conversationId: 1, operationKey: 1 },
    { name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },
  ],
  // What the sweep of transient events looks for. No TTL: an end of a log must stay, or its place would be given out again.
  ['events', { removableAt: 1 }, { name: 'by_removal', partialFilterExpression: { removableAt: { $exists: true } } }],
  ['events', { unapplied: 1 }, { name: 'unapplied', partialFilterExpression: { unapplied: true } }],
  ['conversations', { workspaceId: 1, lastMessageAt: -1, _id: -1 }, { name: 'by_activity' }],
  [
    'conversations',
    { 'assignment.announced': 1 },
    { name: 'unannounced', partialFilterExpression: { 'assignment.announced': false } },
  ],
  ['typing', { endsAt: 1 }, { name: 'by_end' }],
  // One lead for each form that a visitor sent.
  [
    'leads',
    { operationKey: 1 },
    { name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },
  ],
  ['leads', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_capture' }],
  [
    'leads',
    { 'fanOut.since': 1 },
    { name: 'by_fan_out', partialFilterExpression: { 'fanOut.since': { $exists: true } } },
  ],
  ['leadSubscriptions', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace' }],
  // One attempt for each request that asked for one.
  ['deliveries', { 'operations.key': 1 }, { name: 'by_operation', unique: true }],
  ['deliveries', { 'attempts.attemptId': 1 }, { name: 'by_attempt' }],
  ['deliveries', { leadId: 1, createdAt: -1, _id: -1 }, { name: 'by_lead' }],
  ['deliveries', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace' }],
  ['deliveries', { subscriptionId: 1, createdAt: -1, _id: -1 }, { name: 'by_subscription' }],
  // The queue, by destination: it holds what there is something to do for, and nothing that has ended. Its questions are
  // asked by a field that no other index has, so that they have one possible plan, whatever else there is of a subscription.
  [
    'deliveries',
    { destination: 1, dueAt: 1 },
    { name: 'due_by_destination', partialFilterExpression: { dueAt: { $exists: true } } },
  ],
  // The queue by time, for the question what comes next. Its filter is another one so that no other question is ever
  // answered from it: asked for the destinations, it would be read from end to end.
  [
    'deliveries',
    { dueAt: 1, destination: 1 },
    { name: 'due', partialFilterExpression: { dueAt: { $gt: new Date(0) } } },
  ],
  ['deliveries', { destination: 1, status: 1 }, { name: 'held', partialFilterExpression: { status: 'held' } }],
  [
    'deliveries',
    { destination: 1, requestedAt: -1 },
    { name: 'by_request', partialFilterExpression: { requestedAt: { $exists: true } } },
  ],
  [
    'deliveries',
    { 'verdict.attemptId': 1 },
    { name: 'verdicts', partialFilterExpression: { verdict: { $exists: true } } },
  ],
  ['deliveries', { deleteAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['sessions', { visitorId: 1, status: 1 }, { name: 'by_visitor' }],
  [
    'sessions',
    { 'identity.subjectId': 1, status: 1 },
    { name: 'by_subject', partialFilterExpression: { 'identity.subjectId': { $exists: true } } },
  ],
  ['nonces', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['installations', { origins: 1 }, { name: 'by_origin' }],
  ['installations', { workspaceId: 1 }, { name: 'by_workspace' }],
  // One command for each operation of an operator.
  ['commands', { sessionId: 1, operationId: 1 }, { name: 'by_operation', unique: true }],
  ['commands', { sessionId: 1, requestedAt: -1, _id: -1 }, { name: 'by_session' }],
  ['commands', { state: 1, expiresAt: 1 }, { name: 'by_state' }],
  ['commands', { 'uploads.startedAt': 1 }, { name: 'by_upload', sparse: true }],
  // No expiry index: what a command has in the screenshot store goes with it.
  ['commands', { deleteAt: 1 }, { name: 'by_deletion' }],
  ['idempotency', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
]

/**
 * Connects, and makes the collections and indexes that are missing; several processes may do so at once.
 * Every acknowledged write is journaled, and on a replica set held by the majority.
 */
export async function openDatabase(settings: { uri: string; name: string; timeoutMs: number }): Promise<Database> {
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
  })
  try {
    await client.connect()
    const db = client.db(settings.name, { writeConcern: await durableWriteConcern(client) })
    await createWakeups(db)
    await createIndexes(db)
    const { socketPath } = client.options.hosts[0] ?? {}
    const nudge = socketPath === undefined ? undefined : createFileNudge(`${socketPath}.${settings.name}.wakeups`)
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

function collectionsOf(db: Db): Collections {
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
  }
}

async function createWakeups(db: Db) {
  try {
    await db.createCollection('wakeups', { capped: true, size: wakeupBytes })
  } catch (error) {
    if (!hasCode(error, 'NamespaceExists')) throw error
  }
}

async function createIndexes(db: Db) {
  const plans = Map.groupBy(indexes, ([collection]) => collection)
  await Promise.all(
    [...plans].map(async ([collection, specifications]) => {
      const wanted = specifications.map(
        ([, key, options]) => ({ key, ...options }) as Parameters<Collection<Document>['createIndexes']>[0][number],
      )
      await untilSettled(() => db.collection(collection).createIndexes(wanted))
    }),
  )
}

/** Two processes that start together may ask for the same index at the same moment: one of them is told to come again. */
async function untilSettled(attempt: () => Promise<unknown>) {
  for (let tries = 1; ; tries += 1) {
    try {
      await attempt()
      return
    } catch (error) {
      const passing = [
        'ConflictingOperationInProgress',
        'IndexBuildAborted',
        'IndexBuildAlreadyInProgress',
        'NamespaceExists',
        'WriteConflict',
      ]
      if (tries >= 20 || !passing.some((name) => hasCode(error, name))) throw error
      await delay(50 * tries)
    }
  }
}

function hasCode(error: unknown, codeName: string): boolean {
  return error instanceof MongoServerError && error.codeName === codeName
}
