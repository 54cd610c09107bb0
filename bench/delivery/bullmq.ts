import { freePort, startCommandProcess, startProgram } from '../../test/support/processes.ts'
import { installPeers, peerVersion, programVersion } from '../peers.ts'
import { scratchFolder } from '../workspace.ts'
import { type Contender, concurrency } from './contender.ts'
import { producing } from './producer.ts'

/** The job queue BullMQ on a local Redis, with or without an attempt log. */
export const bullmq = ({ log }: { log: boolean }): Contender => ({
  name: log ? 'BullMQ, attempt log' : 'BullMQ, no log',
  about: `BullMQ ${peerVersion('bullmq')}, concurrency ${concurrency}, 9 attempts, other settings at their defaults; Redis with appendonly yes, appendfsync everysec${log ? '; one hash written for each attempt' : ''}`,
  async start(receiverPort) {
    await installPeers()
    if ((await programVersion('redis-server')) === undefined) {
      throw new Error('redis-server is not installed (Debian: apt-get install redis-server)')
    }
    const port = await freePort()
    const folder = await scratchFolder('redis')
    const persistence = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--logfile', 'redis.log']
    const redis = await startProgram('redis-server', [...args, ...persistence], port)
    const newWorker = () =>
      startCommandProcess({ entry: 'bench/delivery/bullmq-worker.ts', args: [String(port), log ? 'log' : 'no-log'] })
    let worker = await newWorker()
    const producer = await startCommandProcess({
      entry: 'bench/delivery/bullmq-producer.ts',
      args: [String(port), String(receiverPort)],
    })
    return {
      ...producing(producer),
      worker: () => worker,
      async startWorker() {
        worker = await newWorker()
      },
      pids: () => [redis.pid, worker.pid],
      async stop() {
        for (const each of [producer, worker, redis]) await each.stop()
      },
    }
  },
})
