import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { allMetrics } from '../../dev/make/metrics.ts'
import { startDeliveryWorker, type WorkerProcess } from '../support/delivery-worker.ts'
import { scrape, sumOf } from '../support/metrics.ts'
import type { Operator } from '../support/operator.ts'
import { freePort } from '../support/processes.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

const database = testDatabase()
const env = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', DELIVERY_LEASE_MS: '1000' }
/** Names of metrics for which a process has reported a value. */
const seen = new Set<string>()
let stack: Stack
let receiver: Receiver
let operator: Operator
let visitor: Visitor
let worker: WorkerProcess

beforeAll(async () => {
  receiver = await startReceiver()
  stack = await startStack({ database, cores: 2, env })
  operator = stack.operator()
  visitor = await newVisitor()
})
afterAll(() => receiver.close())

const newVisitor = () => stack.newVisitor()

/** Reads the metrics of the given processes. */
async function readMetrics(parts: { metricsUrl: string }[]) {
  const samples = (await Promise.all(parts.map(({ metricsUrl }) => scrape(metricsUrl)))).flat()
  for (const { name, value } of samples) if (value > 0) seen.add(name.replace(/_(count|sum|bucket)$/, ''))
  return samples
}

/** Waits until the metric's sum over the given processes is above 0, and returns the sum. */
function counted(parts: { metricsUrl: string }[], name: string, labels: Record<string, string> = {}) {
  return until(`a value of ${name} ${JSON.stringify(labels)}`, async () =>
    sumOf(await readMetrics(parts), name, labels),
  )
}

const ofGateway = (name: string, labels = {}) => counted(stack.gateways, `service_gateway_${name}`, labels)
const ofCores = (name: string, labels = {}) => counted(stack.cores, `service_core_${name}`, labels)
const ofWorker = (name: string, labels = {}) => counted([worker], `service_delivery_${name}`, labels)

async function inDatabase<T>(run: (db: Db) => Promise<T>): Promise<T> {
  const client = new MongoClient(database.uri)
  return run(client.db(database.name)).finally(() => client.close())
}

/** Requests a delivery of a new lead. Returns the id of its new subscription. */
async function deliver(path: string): Promise<string> {
  const { workspaceId } = stack.demo
  const destinationUrl = path.startsWith('http') ? path : `${receiver.http}${path}`
  const { subscriptionId } = await operator.leads.createSubscription({ workspaceId, destinationUrl })
  const { leadId } = await operator.leads.captureLead({ workspaceId, source: 'test', fields: { email: 'a@b.example' } })
  await operator.leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return subscriptionId
}

it('requests are counted by route, method and status class, and timed', async () => {
  const operation = { clientOperationId: randomUUID() }
  for (let times = 0; times < 2; times += 1) expect((await visitor.send('Hello', operation)).status).toBe(202)
  const route = '/api/integrations/v1/widget/messages'
  expect(await ofGateway('requests_total', { route, method: 'POST', status: '2xx' })).toBe(2)
  expect(await ofGateway('request_duration_seconds_count', { route })).toBe(2)
  expect(await ofGateway('request_duration_seconds_sum', { route })).toBeLessThan(10)
  expect(await ofGateway('send_batch_size_sum')).toBe(2)
  expect(await ofCores('sends_total', { author: 'visitor', result: 'accepted' })).toBe(1)
  expect(await ofCores('sends_total', { author: 'visitor', result: 'replayed' })).toBe(1)
  expect(await ofCores('log_conflicts_total', { kind: 'operation_taken' })).toBe(1)
  expect(await ofCores('log_insert_duration_seconds_count')).toBeGreaterThanOrEqual(2)
  const call = { service: 'service.messaging.v1.MessagingService', method: 'SendVisitorMessages' }
  expect(await ofCores('calls_total', { ...call, code: 'ok' })).toBe(2)
  expect(await ofCores('call_duration_seconds_count', call)).toBe(2)
})

it('an unknown path is not used as a label', async () => {
  await fetch(`${stack.gateways[0]!.url}/api/integrations/v1/widget/${randomUUID()}`)
  expect(await ofGateway('requests_total', { route: 'unknown', status: '4xx' })).toBeGreaterThanOrEqual(1)
  const text = await (await fetch(stack.gateways[0]!.metricsUrl)).text()
  for (const id of [visitor.session.sessionId, visitor.session.conversationId, stack.demo.siteKey])
    expect(text).not.toContain(id)
})

it('open streams, replays, stream events and stream ends are counted', async () => {
  const stream = await visitor.openStream({ after: 0 })
  expect(await ofGateway('streams_open')).toBe(1)
  expect(await ofGateway('core_links_up')).toBe(2)
  expect(await ofCores('subscriptions_open')).toBe(1)
  await until('the replay', () => stream.events.length > 0)
  expect(await ofCores('replay_size_sum')).toBe(stream.events.length)
  expect(await ofGateway('stream_events_total')).toBe(stream.events.length)

  const lost = await visitor.openStream({ lastEventId: 'gone-1' })
  await lost.ended
  expect(await ofCores('stream_resets_total', { reason: 'epoch_changed' })).toBe(1)
  expect(await ofGateway('stream_ends_total', { reason: 'replay.reset.required' })).toBe(1)
  stream.close()
  expect(await ofGateway('stream_ends_total', { reason: 'client' })).toBe(1)
})

it('the queue of writes to the event log is measured during concurrent writes', async () => {
  const { conversationId } = visitor.session
  const send = (index: number) =>
    operator.messaging.sendAgentMessage({ conversationId, clientOperationId: `agent-${index}`, body: 'Hello' })
  const sends = Promise.all(Array.from({ length: 400 }, (_, index) => send(index)))
  expect(await ofCores('log_queue_length')).toBeLessThan(400)
  await sends
  expect(await ofCores('sends_total', { author: 'agent', result: 'accepted' })).toBe(400)
  expect(await ofCores('log_batch_size_sum')).toBeGreaterThanOrEqual(401)
})

it('the lag of wake-ups is measured, and a lost wake-up is counted', async () => {
  const stream = await visitor.openStream()
  await until('a measured lag', async () => (await ofCores('wakeup_lag_seconds_count')) > 0)
  expect(await ofCores('wakeup_lag_seconds_sum')).toBeLessThan(60)

  // Simulates a core that crashes after a write and before its wake-up.
  const { conversationId } = visitor.session
  const sequence = await inDatabase(async (db) => {
    const events = db.collection('events')
    const [last] = await events.find({ conversationId }).sort({ sequence: -1 }).limit(1).toArray()
    const { _id, operationKey, ...event } = last!
    await events.insertOne({ ...event, sequence: event.sequence + 1 })
    return event.sequence + 1
  })
  await until('the event', () => stream.events.some((event) => event.sequence === sequence))
  expect(await ofCores('missed_wakeups_total')).toBeGreaterThanOrEqual(1)
  stream.close()
})

it('rejections are counted by rate limit and by error code', async () => {
  const eager = await newVisitor()
  const answers = await Promise.all(Array.from({ length: 15 }, () => eager.send('Hello')))
  const refused = answers.filter(({ status }) => status === 429).length
  expect(refused).toBeGreaterThan(0)
  expect(await ofGateway('rate_limited_total', { limit: 'sends' })).toBe(refused)
  expect(await ofGateway('failures_total', { code: 'RateLimited' })).toBe(refused)

  const stream = await eager.openStream()
  await operator.sessions.banVisitor({ sessionId: eager.session.sessionId, reason: 'test' })
  await stream.ended
  expect(await ofGateway('stream_ends_total', { reason: 'visitor.banned' })).toBe(1)
  expect((await eager.call('GET', '/messages')).status).toBe(403)
  expect(await ofGateway('failures_total', { code: 'VisitorBanned' })).toBeGreaterThanOrEqual(1)
})

/** Returns the length of the gateway's send queue while all cores hang. */
async function queueWhileCoresHang(): Promise<number> {
  // The gateway has just cached the new visitor's grant, so the sends below reach the queue.
  const sender = await newVisitor()
  expect((await sender.send('Hello')).status).toBe(202)
  const sends: ReturnType<Visitor['send']>[] = []
  let queued = 0
  for (const core of stack.cores) core.process().kill('SIGSTOP')
  try {
    // Sends a message every 50 ms. The gateway makes two calls to the cores at once, and the other
    // messages wait in its queue.
    for (let index = 0; index < 5; index += 1) {
      sends.push(sender.send('Are you there?'))
      await delay(50)
    }
    queued = sumOf(await readMetrics(stack.gateways), 'service_gateway_send_queue_length')
  } finally {
    for (const core of stack.cores) core.process().kill('SIGCONT')
  }
  for (const { status } of await Promise.all(sends)) expect(status).toBe(202)
  return queued
}

it('queued sends are measured while the cores hang', async () => {
  // On a busy machine, the gateway may check a grant again before it queues a send. Then the queue
  // is empty, and the test tries again.
  await until('queued sends', async () => (await queueWhileCoresHang()) >= 1)
})

it('database commands, failures and connections are measured', async () => {
  expect(await ofCores('database_command_duration_seconds_count', { command: 'insert' })).toBeGreaterThan(0)
  // Kills the database cursors with which the cores receive wake-ups.
  await inDatabase(async (db) => {
    // If a core writes a wake-up meanwhile, it creates the collection, but not as a capped one.
    await until('the collection is capped', async () => {
      await db.dropCollection('wakeups')
      return db.createCollection('wakeups', { capped: true, size: 1024 * 1024 }).catch(() => undefined)
    })
  })
  expect(await ofCores('database_failures_total', { command: 'getMore' })).toBeGreaterThanOrEqual(1)
  expect(await ofCores('database_connections', { state: 'open' })).toBeGreaterThan(1)
  expect(await ofCores('database_connections', { state: 'in_use' })).toBeGreaterThan(0)
})

it('the number of due deliveries and the age of the oldest one are measured', async () => {
  await deliver('/200?due')
  await deliver('/422')
  await deliver(`http://127.0.0.1:${await freePort()}/refused`)
  const due = async () => sumOf(await readMetrics([stack.cores[0]!]), 'service_core_deliveries_due')
  await until('three due deliveries', async () => (await due()) === 3)
  expect(await ofCores('oldest_due_age_seconds')).toBeLessThan(60)
})

it('attempts are counted by outcome in the worker and by status in the core', async () => {
  worker = await startDeliveryWorker(stack, env)
  expect(await ofWorker('attempts_total', { outcome: 'response', detail: '2xx' })).toBe(1)
  expect(await ofWorker('attempts_total', { outcome: 'response', detail: '4xx' })).toBe(1)
  expect(await ofWorker('attempts_total', { outcome: 'failure', detail: 'connection_refused', phase: 'connect' })).toBe(
    1,
  )
  expect(await ofWorker('attempt_duration_seconds_count', { outcome: 'response' })).toBe(2)
  expect(await ofWorker('idle_connections')).toBeGreaterThanOrEqual(1)
  expect(await ofWorker('streams')).toBeGreaterThanOrEqual(1)
  expect(await ofWorker('claimed_total')).toBeGreaterThanOrEqual(3)
  expect(await ofCores('attempts_total', { status: 'accepted', response_class: 'accepted' })).toBe(1)
  expect(await ofCores('attempts_total', { status: 'failed', response_class: 'rejected_payload' })).toBe(1)
  expect(
    await ofCores('attempts_total', { status: 'retry_scheduled', response_class: 'network_error' }),
  ).toBeGreaterThanOrEqual(1)
  expect(await ofCores('claimed_deliveries_total')).toBeGreaterThanOrEqual(3)
})

it('running attempts, claim renewals and unreported results are measured', async () => {
  const waiting: ServerResponse[] = []
  receiver.on('/slow', (_request, response) => void waiting.push(response))
  await deliver('/slow')
  expect(await ofWorker('attempts_running')).toBe(1)
  expect(await ofWorker('renewals_total', { result: 'held' })).toBeGreaterThanOrEqual(1)
  expect(await ofCores('claim_renewals_total', { result: 'held' })).toBeGreaterThanOrEqual(1)
  for (const core of stack.cores) core.process().kill('SIGSTOP')
  for (const response of waiting) response.writeHead(200).end()
  expect(await ofWorker('unreported')).toBe(1)
  for (const core of stack.cores) core.process().kill('SIGCONT')
})

it('expired leases and late results are counted when a worker hangs', async () => {
  const waiting: ServerResponse[] = []
  receiver.on('/held', (_request, response) => void waiting.push(response))
  await deliver('/held')
  await until('the first attempt', () => waiting.length === 1)
  worker.process().kill('SIGSTOP')
  const other = await startDeliveryWorker(stack, env)
  await until('the second attempt', () => waiting.length === 2)
  expect(await ofCores('lease_expiries_total')).toBeGreaterThanOrEqual(1)
  for (const response of waiting) response.writeHead(200).end()
  await counted([other], 'service_delivery_attempts_total', { detail: '2xx' })
  await delay(500)
  worker.process().kill('SIGCONT')
  expect(await ofWorker('late_results_total')).toBeGreaterThanOrEqual(1)
})

it('deliveries that wait for a retry, and those of a disabled subscription, are measured', async () => {
  const subscriptionId = await deliver('/503')
  expect(await ofCores('deliveries_scheduled')).toBeGreaterThanOrEqual(1)
  await operator.leads.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
  expect(await ofCores('deliveries_held')).toBeGreaterThanOrEqual(1)
})

it('a visitor without an answer is measured', async () => {
  const waiting = await stack.newVisitor()
  await waiting.send('Is anybody there?')
  expect(await ofCores('people_waiting')).toBeGreaterThanOrEqual(1)
  expect(await ofCores('longest_wait_seconds')).toBeGreaterThan(0)
})

/**
 * Metrics that have no value here. The retention removes data that is at least a day old
 * (`core/privacy/retention.test.ts`). This stack has no TLS, and its tokens do not expire
 * (`platform/observability/process-metrics.test.ts`). The cores and the database share a clock
 * (`core/database/database-check.test.ts`), and the embedded engine may not tell of its disk. The state
 * of destinations is measured every 30 s (`core/deliveries/delivery-metrics.test.ts`).
 */
const testedElsewhere = new Set([
  'service_core_backup_last_success_seconds',
  'service_core_removed_total',
  'service_core_spared_total',
  'service_core_clock_offset_seconds',
  'service_core_database_disk_bytes',
  'service_core_disabled_subscriptions',
  'service_core_failing_destination_seconds',
  'service_token_expires_timestamp_seconds',
  'service_tls_expires_timestamp_seconds',
  'service_tls_stale',
  'service_log_lines_dropped_total',
])

it('every declared metric had a value in the tests above', () => {
  const names = allMetrics().flatMap(({ name }) => (testedElsewhere.has(name) ? [] : [name]))
  expect(names.filter((name) => !seen.has(name))).toEqual([])
})
