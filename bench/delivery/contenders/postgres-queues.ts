import { startCommandProcess } from '../../../test/support/processes.ts'
import { installPeers, peerVersion } from '../../peers.ts'
import { startPostgres } from '../../postgres.ts'
import { type Contender, concurrency } from './contender.ts'
import { producing } from './producer.ts'

const settings = `PostgreSQL with its default settings, one row inserted for each attempt; concurrency ${concurrency}, 9 attempts`

/** Job queues on PostgreSQL, each with a table of attempts. */
export const postgresQueues: Contender[] = [
  {
    name: 'pg-boss, attempt table',
    about: `pg-boss ${peerVersion('pg-boss')} on ${settings}, woken by NOTIFY, five workers with batches of ten`,
    start: (receiverPort) => startQueue('bench/delivery/contenders/pg-boss-process.ts', [], receiverPort),
  },
  {
    name: 'graphile-worker, attempt table',
    about: `graphile-worker ${peerVersion('graphile-worker')} on ${settings}, other settings at their defaults`,
    start: (receiverPort) => startQueue('bench/delivery/contenders/graphile-process.ts', ['single'], receiverPort),
  },
  {
    name: 'graphile-worker, batched',
    about: `the same with localQueue of ${concurrency * 2} and completions batched for 100 ms`,
    start: (receiverPort) => startQueue('bench/delivery/contenders/graphile-process.ts', ['batched'], receiverPort),
  },
]

async function startQueue(entry: string, more: string[], receiverPort: number) {
  await installPeers()
  const { running: postgres, uri } = await startPostgres()
  const start = (role: string) => startCommandProcess({ entry, args: [role, uri, String(receiverPort), ...more] })
  const producer = await start('producer')
  let worker = await start('worker')
  return {
    ...producing(producer),
    worker: () => worker,
    async startWorker() {
      worker = await start('worker')
    },
    pids: () => [postgres.pid, worker.pid, producer.pid],
    async stop() {
      for (const each of [producer, worker, postgres]) await each.stop()
    },
  }
}
