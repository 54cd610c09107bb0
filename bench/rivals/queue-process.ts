// Worker or producer of a job queue. Sends the same signed request as the service, and stores each attempt.
// Arguments: the queue, the role, the address of its store, the receiver's port.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { Agent, request } from 'undici'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { handleCommands } from '../commands.ts'
import { concurrency, destinations, payloadBytes, serveProducer } from '../delivery/pacing.ts'
import { requirePeer } from './programs.ts'

interface WebhookJob {
  deliveryId: string
  url: string
  body: string
}

interface Attempt {
  status: number
  durationMs: number
}

interface Queue {
  add(job: WebhookJob): Promise<unknown>
  addAll(jobs: WebhookJob[]): Promise<unknown>
  /** Whether the results of all attempts are stored. */
  isSettled(): Promise<boolean>
}

const [kind = '', role = '', address = '', receiverPort = ''] = process.argv.slice(2)
const maxAttempts = 9
const bulk = 500
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const dispatcher = new Agent({ keepAliveTimeout: 4_000, headersTimeout: 10_000, bodyTimeout: 10_000 })

function newJob(index: number): WebhookJob {
  const deliveryId = `dlv_${randomUUID()}`
  const fields = { email: 'visitor@example.com', message: 'x'.repeat(payloadBytes - 300) }
  const body = JSON.stringify({
    ...{ eventType: 'lead.ready-for-delivery', id: deliveryId, contractVersion: '1.0' },
    ...{ occurredAt: new Date().toISOString(), data: { reference: `lead_${randomUUID()}`, ...fields } },
  })
  return { deliveryId, url: `http://127.0.0.1:${receiverPort}/${index % destinations}`, body }
}

async function sendWebhook({ deliveryId, url, body }: WebhookJob): Promise<Attempt> {
  const began = performance.now()
  const bytes = Buffer.from(body)
  const secrets = { active: secret, all: [secret] }
  const headers = webhookHeaders({ deliveryId, correlationId: randomUUID(), body: bytes, secrets, at: Date.now() })
  const { statusCode, body: answer } = await request(url, { method: 'POST', headers, body: bytes, dispatcher })
  await answer.dump()
  if (statusCode >= 300) throw new Error(`status ${statusCode}`)
  return { status: statusCode, durationMs: Math.round(performance.now() - began) }
}

/** Returns a function that sends a webhook and inserts a row about the attempt. */
async function openAttempts() {
  const { Pool } = requirePeer('pg')
  const pool = new Pool({ connectionString: address, max: 10 })
  await pool.query(
    'create table if not exists attempts (delivery text not null, number int not null, status int not null, duration_ms int not null, at timestamptz not null default now(), primary key (delivery, number))',
  )
  const text = 'insert into attempts (delivery, number, status, duration_ms) values ($1, $2, $3, $4)'
  return async (job: WebhookJob, number: number): Promise<void> => {
    const { status, durationMs } = await sendWebhook(job)
    await pool.query({ name: 'attempt', text, values: [job.deliveryId, number, status, durationMs] })
  }
}

function counterOf(query: string): () => Promise<number> {
  const { Pool } = requirePeer('pg')
  const pool = new Pool({ connectionString: address, max: 2 })
  return async () => Number((await pool.query(query)).rows[0]?.id)
}

async function openBullmq(): Promise<Queue> {
  const { Queue, Worker } = requirePeer('bullmq')
  const connection = { host: '127.0.0.1', port: Number(address) }
  const queue = new Queue('webhooks', {
    connection,
    defaultJobOptions: { attempts: maxAttempts, backoff: { type: 'exponential', delay: 5_000 } },
  })
  if (role === 'worker') {
    const redis = new Redis({ ...connection, maxRetriesPerRequest: null })
    const run = async ({ data, attemptsMade }: { data: WebhookJob; attemptsMade: number }) => {
      const { status, durationMs } = await sendWebhook(data)
      const at = new Date().toISOString()
      await redis.hset(`attempt:${data.deliveryId}:${attemptsMade + 1}`, { status, durationMs, at })
      return status
    }
    const worker = new Worker('webhooks', run, { connection, concurrency })
    worker.on('error', () => {})
    await worker.waitUntilReady()
  }
  return {
    add: (data) => queue.add('webhook', data),
    addAll: (jobs) => queue.addBulk(jobs.map((data) => ({ name: 'webhook', data }))),
    isSettled: async () => Object.values(await queue.getJobCounts('active', 'waiting')).every((count) => count === 0),
  }
}

interface BossJob {
  id: string
  data: WebhookJob
  retryCount: number
}

async function openPgBoss(): Promise<Queue> {
  const { PgBoss } = requirePeer('pg-boss')
  const boss = new PgBoss({ connectionString: address, max: 20, useListenNotify: role === 'worker' })
  boss.on('error', () => {})
  await boss.start()
  const again = { retryLimit: maxAttempts - 1, retryDelay: 5, retryBackoff: true }
  if (role === 'producer') await boss.createQueue('webhooks', { ...again, notify: true, expireInSeconds: 60 })
  else {
    const send = await openAttempts()
    const batchSize = 10
    // Each worker runs the jobs of a batch in parallel. After a full batch, it fetches again at once.
    const options = {
      ...{ localConcurrency: concurrency / batchSize, batchSize, burstWhenBatchFull: true, perJobResults: true },
      ...{ includeMetadata: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 },
    }
    const run = (job: BossJob) =>
      send(job.data, job.retryCount + 1).then(
        () => ({ id: job.id, status: 'completed' }),
        () => ({ id: job.id, status: 'failed' }),
      )
    await boss.work('webhooks', options, (jobs: BossJob[]) => Promise.all(jobs.map(run)))
  }
  // The numbers of `getQueueStats` are up to a minute old.
  const open = counterOf("select count(*) as id from pgboss.job where state in ('created', 'retry', 'active')")
  return {
    add: (data) => boss.send('webhooks', data),
    addAll: (jobs) =>
      boss.insert(
        'webhooks',
        jobs.map((data) => ({ data })),
      ),
    isSettled: async () => (await open()) === 0,
  }
}

async function openGraphile(): Promise<Queue> {
  const { makeWorkerUtils, run } = requirePeer('graphile-worker')
  const { Pool } = requirePeer('pg')
  const pgPool = new Pool({ connectionString: address, max: 20 })
  // graphile-worker asks its logger for further loggers with `scope`.
  const logger: object = { info() {}, warn() {}, error() {}, debug() {}, log() {}, scope: () => logger }
  const utils = await makeWorkerUtils({ pgPool, logger })
  await utils.migrate()
  if (role === 'worker') {
    const send = await openAttempts()
    const webhook = (data: WebhookJob, { job }: { job: { attempts: number } }) => send(data, job.attempts)
    // These settings let it fetch and complete jobs in groups.
    const batches = { localQueue: { size: concurrency * 2 }, completeJobBatchDelay: 100, failJobBatchDelay: 100 }
    const preset = { worker: { concurrentJobs: concurrency, ...batches } }
    await run({ pgPool, logger, noHandleSignals: true, taskList: { webhook }, preset })
  }
  const open = counterOf('select count(*) as id from graphile_worker._private_jobs')
  return {
    add: (data) => utils.addJob('webhook', data, { maxAttempts }),
    addAll: (jobs) => utils.addJobs(jobs.map((payload) => ({ identifier: 'webhook', payload, maxAttempts }))),
    isSettled: async () => (await open()) === 0,
  }
}

const queues: Record<string, () => Promise<Queue>> = {
  bullmq: openBullmq,
  'pg-boss': openPgBoss,
  graphile: openGraphile,
}
const { add, addAll, isSettled } = await queues[kind]!()

async function fill(count: number): Promise<void> {
  for (let from = 0; from < count; from += bulk)
    await addAll(Array.from({ length: Math.min(bulk, count - from) }, (_, index) => newJob(from + index)))
}

async function create(index: number): Promise<string> {
  const job = newJob(index)
  await add(job)
  return job.deliveryId
}

// These queues do not distinguish destinations, so `fillOne` does the same as `fill`.
if (role === 'producer') serveProducer({ create, fill, fillOne: fill, isSettled })
else handleCommands(async () => true)
