// Worker or producer process of the job queue pg-boss. Arguments: `worker` or `producer`, the
// database's URI, the receiver's port.
import { type PgPool, requirePeer } from '../../peers.ts'
import type { WebhookJob } from '../webhook.ts'
import { loggedSends } from './attempt-table.ts'
import { concurrency } from './contender.ts'
import { serveQueue } from './queue-process.ts'

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
const batchSize = 10
const again = { retryLimit: 8, retryDelay: 5, retryBackoff: true }

if (role === 'producer') await boss.createQueue(name, { ...again, notify: true, expireInSeconds: 60 })
else {
  const send = await loggedSends(connectionString)
  // Each worker runs the jobs of a batch in parallel. After a full batch, it fetches again at once.
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

serveQueue(
  {
    add: (data) => boss.send(name, data),
    addAll: (jobs) =>
      boss.insert(
        name,
        jobs.map((data) => ({ data })),
      ),
    /** Reads the table, because the numbers of `getQueueStats` are up to a minute old. */
    async isSettled() {
      const open = "select count(*) as id from pgboss.job where state in ('created', 'retry', 'active')"
      return Number((await pool.query(open)).rows[0]?.id) === 0
    },
  },
  receiverPort,
)
