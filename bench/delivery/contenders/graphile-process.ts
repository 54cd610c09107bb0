// Worker or producer process of the job queue graphile-worker. Arguments: `worker` or `producer`, the
// database's URI, the receiver's port, and `single` or `batched`.
import { type PgPool, requirePeer } from '../../peers.ts'
import type { WebhookJob } from '../webhook.ts'
import { loggedSends } from './attempt-table.ts'
import { concurrency } from './contender.ts'
import { serveQueue } from './queue-process.ts'

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

/** Returns a logger that writes nothing. graphile-worker asks it for further loggers with `scope`. */
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

serveQueue(
  {
    add: (data) => utils.addJob('webhook', data, { maxAttempts }),
    addAll: (jobs) => utils.addJobs(jobs.map((payload) => ({ identifier: 'webhook', payload, maxAttempts }))),
    async isSettled() {
      const { rows } = await pool.query('select count(*) as id from graphile_worker._private_jobs')
      return Number(rows[0]?.id) === 0
    },
  },
  receiverPort,
)
