import { startCommandProcess } from '../../../test/support/processes.ts'
import { installPeers, peerVersion } from '../../peers.ts'
import { lockLimit, processEveryMs } from './agenda-settings.ts'
import { type Contender, concurrency } from './contender.ts'
import { startOwnCore } from './ours.ts'
import { producing } from './producer.ts'

/** The job queue Agenda, on the same kind of database engine as the service. */
export const agenda: Contender = {
  name: 'Agenda',
  about: `Agenda ${peerVersion('agenda')} on the same MongoDB engine, journaled writes, concurrency ${concurrency}, lockLimit ${lockLimit} (default: none), processEvery ${processEveryMs} ms (default: 5 s), other settings at their defaults; the job's document is its log`,
  async start(receiverPort) {
    await installPeers()
    // Agenda uses only the core's database engine. The core itself is idle.
    const core = await startOwnCore()
    const address = new URL(core.mongodbUri)
    address.pathname = '/agenda'
    const args = [address.href, String(receiverPort)]
    const newWorker = () =>
      startCommandProcess({ entry: 'bench/delivery/contenders/agenda-process.ts', args: ['worker', ...args] })
    let worker = await newWorker()
    const producer = await startCommandProcess({
      entry: 'bench/delivery/contenders/agenda-process.ts',
      args: ['producer', ...args],
    })
    return {
      ...producing(producer),
      worker: () => worker,
      async startWorker() {
        worker = await newWorker()
      },
      pids: () => [core.running.pid, worker.pid, producer.pid],
      async stop() {
        for (const each of [producer, worker, core.running]) await each.stop()
      },
    }
  },
}
