// Worker or producer process of the job queue pg-boss. Arguments: `worker` or `producer`, the
// database's URI, the receiver's port.
import { setTimeout as delay } from 'node:timers/promises'
import { handleCommands } from '../commands.ts'
import { type PgPool, requirePeer } from '../peers.ts'
import { loggedSends } from './attempt-table.ts'
import { concurrency, destinations } from './contender.ts'
import { runAtRate, runConcurrently } from './pacing.ts'
import type { ProducerCommand } from './producer.ts'
import { newJob, type WebhookJob } from './webhook.ts'

interface Job {
  id: string
  data: WebhookJob
  retryCount: number
}
interface Boss {
  on(event: 'error', listener: () => void): unknown
  start(): Promise<unknown>
  createQueue(name: string, options: object): Promise<void>
  send(name: string, data: object): Promise<unknown>
  insert(name: string, jobs: { data: object }[]): Promise<unknown>
  work(name: string, options: object, run: (jobs: Job[]) => Promise<unknown>): Promise<unknown>
}

const [role = '', connectionString = '', receiverPort = ''] = process.argv.slice(2)
const { PgBoss } = requirePeer<{ PgBoss: new (options: object) => Boss }>('pg-boss')
const boss = new PgBoss({ connectionString, max: 20, useListenNotify: role === 'worker' })
boss.on('error', () => {})
await boss.start()
const { Pool } = requirePeer<PgPool>('pg')
const pool = new Pool({ connectionString, max: 2 })
const name = 'webhooks'
const bulk = 500
const batchSize = 10
const again = { retryLimit: 8, retryDelay: 5, retryBackoff: true }

if (role === 'producer') await boss.createQueue(name, { ...again, notify: true, expireInSeconds: 60 })
else {
  const send = await loggedSends(connectionString)
  // Each of the workers runs a batch at once, and fetches again at once after a full batch.
  const options = {
    localConcurrency: concurrency / batchSize,
    batchSize,
    burstWhenBatchFull: true,
    perJobResults: true,
    includeMetadata: true,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
  }
  const run = (job: Job) =>
    send(job.data, job.retryCount + 1).then(
      () => ({ id: job.id, status: 'completed' }),
      () => ({ id: job.id, status: 'failed' }),
    )
  await boss.work(name, options, (jobs) => Promise.all(jobs.map(run)))
}

async function create(index: number): Promise<string> {
  const data = newJob(receiverPort, index, destinations)
  await boss.send(name, data)
  return data.deliveryId
}

async function fill(count: number): Promise<void> {
  for (let from = 0; from < count; from += bulk) {
    const jobs = Array.from({ length: Math.min(bulk, count - from) }, (_, index) => ({
      data: newJob(receiverPort, from + index, destinations),
    }))
    await boss.insert(name, jobs)
  }
}

/** Reads the table, because the numbers of `getQueueStats` are up to a minute old. */
async function settled(): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      "select count(*) as id from pgboss.job where state in ('created', 'retry', 'active')",
    )
    if (Number(rows[0]?.id) === 0) return
    await delay(20)
  }
}

handleCommands(async (command: ProducerCommand) => {
  switch (command.do) {
    // pg-boss does not distinguish destinations, so `fillOne` does the same as `fill`.
    case 'fillOne':
    case 'fill':
      return fill(command.count)
    case 'enqueue':
      return runConcurrently(command.count, command.inFlight, create)
    case 'steady':
      return runAtRate(command.rate, command.seconds, create)
    case 'settled':
      return settled()
  }
})
