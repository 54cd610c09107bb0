import { randomUUID } from 'node:crypto'
import { type CommandStartedEvent, type Document, MongoClient } from 'mongodb'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { startLocalWorker } from '../support/local-worker.ts'
import type { Operator } from '../support/operator.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

/** How often each operation is done. What jobs and caches send beside it is less often. */
const times = 8
const { uri, name } = testDatabase()
const observer = new MongoClient(uri)
let sent: string[] = []
let stack: LocalStack
let receiver: Receiver
let operator: Operator
let visitor: Visitor

/**
 * The commands of beats, which a core in use sends four times a second, and of jobs that look for
 * work more often than every few seconds. An operation causes none of them.
 */
const periodic = [
  'update wakeups by _id',
  'getMore wakeups',
  'hello',
  'aggregate',
  'listCollections',
  'find storeHistory by _id',
  'find deliveries by dueAt',
]

/** Reads that a cache answers for a while. On a slow machine, each operation may outlast it. */
const cached = [
  'find installations by origins enabled',
  'find installations by _id deleted',
  'find connections by _id deleted',
  'find sessions by _id',
  'find leadSubscriptions by _id deleted',
  'distinct leadSubscriptions by workspaceId followedTo deleted',
]

/** Name of a command with its collection and the fields of its condition: `find events by _id`. */
function shapeOf({ commandName, command }: CommandStartedEvent): string {
  const target = commandName === 'getMore' ? command.collection : command[commandName]
  const pipeline: Document[] = command.pipeline ?? []
  const condition = command.filter ?? command.query ?? command.updates?.[0].q ?? pipeline[0]?.$match ?? {}
  const fields = Object.keys(condition).join(' ')
  return [commandName, typeof target === 'string' && target, fields && `by ${fields}`].filter(Boolean).join(' ')
}

/**
 * Does the operation several times, each after the deferred work of the one before. Returns how many
 * commands of each shape every operation has caused.
 */
async function commandsOf(operation: () => Promise<unknown>): Promise<Record<string, number>> {
  sent = []
  for (let count = 0; count < times; count += 1) await operation()
  const counts = Map.groupBy(sent, (shape) => shape)
  return Object.fromEntries(
    [...counts]
      .map(([shape, all]): [string, number] => [shape, Math.floor(all.length / times)])
      .filter(([shape, count]) => count > 0 && !periodic.includes(shape) && !cached.includes(shape)),
  )
}

beforeAll(async () => {
  const connect = MongoClient.prototype.connect
  vi.spyOn(MongoClient.prototype, 'connect').mockImplementation(function (this: MongoClient) {
    if (this.options.appName === 'service-core') this.on('commandStarted', (event) => sent.push(shapeOf(event)))
    return connect.call(this)
  })
  const database = { uri: `${uri}${uri.includes('?') ? '&' : '/?'}monitorCommands=true`, name }
  // For `TYPING_SECONDS` after its start, a core looks for typing that began before.
  const env = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', RATE_LIMIT_FACTOR: '100', TYPING_SECONDS: '1' }
  stack = await startLocalStack({ database, env })
  await startLocalWorker(stack)
  receiver = await startReceiver()
  operator = stack.operator()
})
afterAll(async () => {
  vi.restoreAllMocks()
  await receiver.close()
  await observer.close()
})

/** A visitor with a message, an open stream, and nothing left to do. */
beforeEach(async () => {
  visitor = await stack.newVisitor()
  await visitor.openStream()
  await sendAndSettle()
})

const stored = (collection: string, filter: object, options = {}) =>
  observer.db(name).collection(collection).findOne(filter, options)

/** Waits until search and feed have the last event of the conversation. */
async function settle({ conversationId }: { conversationId: string }) {
  const { sequence } = (await stored('events', { conversationId }, { sort: { sequence: -1 } }))!
  await until('the search entry', () => stored('searchEntries', { _id: `${conversationId}:${sequence}` }))
  await until('the entry of the feed', () => stored('feedEntries', { source: `${conversationId} ${sequence}` }))
}

async function sendAndSettle() {
  expect((await visitor.send('Do you ship to Graz?')).status).toBe(202)
  await settle(visitor.session)
}

async function openPage() {
  await visitor.call('GET', `/config/${stack.demo.siteKey}`)
  await visitor.history()
  const stream = await visitor.openStream()
  await until('the stream to open', () => stream.comments.length > 0)
  stream.close()
}

async function deliverLeads() {
  const { workspaceId } = stack.demo
  const destination = { workspaceId, destinationUrl: `${receiver.http}/200`, mappedFields: ['email'] }
  const { subscriptionId } = await operator.leads.createSubscription(destination)
  const fields = { email: 'zoe@example.com' }
  const { leadId } = await operator.leads.captureLead({ workspaceId, source: 'test', fields })
  return async () => {
    const request = { leadId, subscriptionId, idempotencyKey: randomUUID() }
    const _id = (await operator.leads.createDeliveryAttempt(request)).attempt!.deliveryId
    const announced = { _id, status: 'accepted', unannounced: { $exists: false } }
    await until('the end of the delivery in the feed', () => stored('deliveries', announced))
  }
}

/** What a message of any author costs. Its wake-up also announces the feed entry of the message before it. */
const message = {
  'insert events': 1,
  'update conversations by _id': 1,
  'insert wakeups': 1,
  'insert searchEntries': 1,
  'insert feedEntries': 1,
}

/** Each operation, done alone: at a higher rate, several share what is written behind them. */
const operations: [string, () => Promise<() => Promise<unknown>>, Record<string, number>][] = [
  ['a message of a known visitor', async () => sendAndSettle, message],
  [
    'an agent’s message',
    async () => async () => {
      const { conversationId } = visitor.session
      await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body: 'We do.' })
      await settle(visitor.session)
    },
    { ...message, 'find conversations by _id erasing': 1 },
  ],
  [
    'a delivery',
    deliverLeads,
    {
      'find leads by _id erasing': 1,
      'insert deliveries': 1,
      'find leads by _id': 1,
      'find suppressions by workspaceId': 1,
      'update deliveries by _id status claim.claimId attempts attempts.0.attemptId': 1,
      'find deliveries by unannounced': 1,
      'find leads by _id unannounced': 1,
      'insert feedEntries': 1,
      'insert wakeups': 1,
      'update deliveries by _id status attempts': 1,
    },
  ],
  [
    'a page of a returning visitor',
    async () => openPage,
    {
      'aggregate events by conversationId': 2,
      'find events by unapplied conversationId': 1,
      'find events by conversationId message sequence': 1,
      'find conversations by _id erasing': 1,
    },
  ],
  [
    'the first page of a new visitor',
    async () => async () => {
      visitor = await stack.newVisitor()
      await openPage()
    },
    {
      'insert idempotency': 1,
      'find visitors by _id bannedAt': 1,
      'find networkBans by network endsAt': 1,
      'find erasures by traces.visitorIds isSwept': 1,
      'update conversations by _id': 1,
      'update sessions by _id': 1,
      'update idempotency by _id owner': 1,
      'aggregate events by conversationId': 2,
      'find conversations by _id erasing': 1,
    },
  ],
  [
    'the first message of a new visitor',
    async () => {
      const visitors = await Promise.all(Array.from({ length: times }, () => stack.newVisitor()))
      return async () => {
        visitor = visitors.pop()!
        await sendAndSettle()
      }
    },
    {
      ...message,
      'update sessions by _id status': 1,
      'aggregate events by conversationId': 1,
      'find conversations by _id': 2,
      'aggregate feedEntries by conversationId': 1,
      'find events by conversationId sequence occurredAt transient': 1,
      'find events by conversationId sequence type': 1,
    },
  ],
]

it.each(operations)('%s causes no command of the database besides those listed', async (_name, prepare, limits) => {
  const operation = await prepare()
  const caused = await commandsOf(operation)
  const more = Object.entries(caused).filter(([shape, count]) => count > (limits[shape] ?? 0))
  expect(more).toEqual([])
})

it('messages of a second share one write of the feed', async () => {
  const began = performance.now()
  sent = []
  for (let count = 0; count < 60; count += 1) expect((await visitor.send('Do you ship to Graz?')).status).toBe(202)
  await settle(visitor.session)
  const seconds = (performance.now() - began) / 1000
  expect(sent.filter((shape) => shape === 'insert feedEntries').length).toBeLessThanOrEqual(2 + seconds)
})
