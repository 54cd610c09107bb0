// Worker or producer process of the job queue graphile-worker. Arguments: `worker` or `producer`, the
// database's URI, the receiver's port, and `single` or `batched`.
import { setTimeout as delay } from 'node:timers/promises'
import { handleCommands } from '../commands.ts'
import { type PgPool, requirePeer } from '../peers.ts'
import { loggedSends } from './attempt-table.ts'
import { concurrency, destinations } from './contender.ts'
import { runAtRate, runConcurrently } from './pacing.ts'
import type { ProducerCommand } from './producer.ts'
import { newJob, type WebhookJob } from './webhook.ts'

interface GraphileWorker {
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJob(name: string, data: object, options: object): Promise<unknown>
    addJobs(jobs: { identifier: string; payload: object; maxAttempts: number }[]): Promise<unknown>
  }>
  run(options: object): Promise<unknown>
}
type Helpers = { job: { attempts: number } }

const [role = '', connectionString = '', receiverPort = '', mode = ''] = process.argv.slice(2)
const { makeWorkerUtils, run } = requirePeer<GraphileWorker>('graphile-worker')
const { Pool } = requirePeer<PgPool>('pg')
const pool = new Pool({ connectionString, max: 20 })
const silent = { info() {}, warn() {}, error() {}, debug() {} }
const utils = await makeWorkerUtils({ pgPool: pool, logger: silentLogger() })
await utils.migrate()
const maxAttempts = 9
const bulk = 500

/** The package wants an object with a method `scope`. */
function silentLogger() {
  const logger: object = { ...silent, scope: () => logger, log() {} }
  return logger
}

if (role === 'worker') {
  const send = await loggedSends(connectionString)
  const batched = { localQueue: { size: concurrency * 2 }, completeJobBatchDelay: 100, failJobBatchDelay: 100 }
  await run({
    pgPool: pool,
    logger: silentLogger(),
    noHandleSignals: true,
    taskList: { webhook: (data: WebhookJob, { job }: Helpers) => send(data, job.attempts) },
    preset: { worker: { concurrentJobs: concurrency, ...(mode === 'batched' ? batched : {}) } },
  })
}

async function create(index: number): Promise<string> {
  const data = newJob(receiverPort, index, destinations)
  await utils.addJob('webhook', data, { maxAttempts })
  return data.deliveryId
}

async function fill(count: number): Promise<void> {
  for (let from = 0; from < count; from += bulk) {
    const jobs = Array.from({ length: Math.min(bulk, count - from) }, (_, index) => ({
      identifier: 'webhook',
      payload: newJob(receiverPort, from + index, destinations),
      maxAttempts,
    }))
    await utils.addJobs(jobs)
  }
}

async function settled(): Promise<void> {
  for (;;) {
    const { rows } = await pool.query('select count(*) as id from graphile_worker._private_jobs')
    if (Number(rows[0]?.id) === 0) return
    await delay(20)
  }
}

handleCommands(async (command: ProducerCommand) => {
  switch (command.do) {
    // The queue does not distinguish destinations, so `fillOne` does the same as `fill`.
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
