import { startCommandProcess } from '../../../test/support/processes.ts'
import { installPeers, peerVersion } from '../../peers.ts'
import { startRedis } from '../../redis.ts'
import { type Contender, concurrency } from './contender.ts'
import { producing } from './producer.ts'

/** The job queue BullMQ on a local Redis, with or without an attempt log, which syncs each second or always. */
export const bullmq = ({ log, appendfsync }: { log: boolean; appendfsync: 'everysec' | 'always' }): Contender => ({
  name: `BullMQ, ${log ? 'attempt log' : 'no log'}${appendfsync === 'always' ? ', always synced' : ''}`,
  about: `BullMQ ${peerVersion('bullmq')}, concurrency ${concurrency}, 9 attempts, other settings at their defaults; Redis with appendonly yes, appendfsync ${appendfsync}${log ? '; one hash written for each attempt' : ''}`,
  async start(receiverPort) {
    await installPeers()
    const { running: redis, port } = await startRedis(appendfsync)
    const newWorker = () =>
      startCommandProcess({
        entry: 'bench/delivery/contenders/bullmq-worker.ts',
        args: [String(port), log ? 'log' : 'no-log'],
      })
    let worker = await newWorker()
    const producer = await startCommandProcess({
      entry: 'bench/delivery/contenders/bullmq-producer.ts',
      args: [String(port), String(receiverPort)],
    })
    return {
      ...producing(producer),
      worker: () => worker,
      async startWorker() {
        worker = await newWorker()
      },
      pids: () => [redis.pid, worker.pid, producer.pid],
      async stop() {
        for (const each of [producer, worker, redis]) await each.stop()
      },
    }
  },
})
