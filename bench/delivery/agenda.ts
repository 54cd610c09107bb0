import { installPeers, peerVersion } from '../peers.ts'
import { startCommandProcess } from '../processes.ts'
import { lockLimit, processEveryMs } from './agenda-settings.ts'
import { type Contender, concurrency } from './contender.ts'
import { startOwnCore } from './ours.ts'
import { producing } from './producer.ts'

/** Agenda on the same engine as the service. */
export const agenda: Contender = {
  name: 'Agenda',
  about: `Agenda ${peerVersion('agenda')} on the same MongoDB engine, journaled writes, concurrency ${concurrency}, lockLimit ${lockLimit} (none as it comes), processEvery ${processEveryMs} ms (5 s as it comes), its other settings as they come; the job's document is its log`,
  async start(receiverPort) {
    await installPeers()
    // The core is idle; only its engine is used.
    const core = await startOwnCore()
    const address = new URL(core.mongodbUri)
    address.pathname = '/agenda'
    const args = [address.href, String(receiverPort)]
    const newWorker = () =>
      startCommandProcess({ entry: 'bench/delivery/agenda-process.ts', args: ['worker', ...args] })
    let worker = await newWorker()
    const producer = await startCommandProcess({
      entry: 'bench/delivery/agenda-process.ts',
      args: ['producer', ...args],
    })
    return {
      ...producing(producer),
      worker: () => worker,
      async startWorker() {
        worker = await newWorker()
      },
      pids: () => [core.running.pid, worker.pid],
      async stop() {
        for (const each of [producer, worker, core.running]) await each.stop()
      },
    }
  },
}
