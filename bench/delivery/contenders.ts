import { readCoreConfig } from '../../core/config.ts'
import { type CommandProcess, type StartedProcess, startCommandProcess } from '../../test/support/processes.ts'
import type { Contender, Running } from '../measure.ts'
import { installPeers, peerVersion, startPostgres, startRedis } from '../rivals/programs.ts'
import { type Service, startService } from '../service.ts'
import { concurrency } from './pacing.ts'

/** A running system that delivers. Its work is that of a producer (`pacing.ts`). */
export interface Delivering extends Running {
  receiver: CommandProcess
  /** Undefined if the worker runs with all else in one process. */
  worker(): StartedProcess | undefined
  /** After this time, a worker that hangs gets no more deliveries. */
  goneAfterMs: number
  startWorker(): Promise<unknown>
  service?: Service
}
type DeliveryContender = Contender<Delivering>

const startReceiver = () => startCommandProcess({ entry: 'bench/delivery/receiver.ts' })

const serviceAs = (name: string, about: string, layout: 'parts' | 'serve'): DeliveryContender => ({
  name,
  about: `${about}, DELIVERY_CONCURRENCY=${concurrency}; every attempt is logged, every acknowledged write journaled`,
  async start(given) {
    const receiver = await startReceiver()
    const port = await receiver.call<number>({ do: 'port' })
    const service = await startService({ layout, worker: true, gateways: layout === 'serve' ? 1 : 0, ...given })
    const args = [service.accessFile, String(port)]
    const producer = await startCommandProcess({ entry: 'bench/delivery/our-producer.ts', args })
    return {
      ...{ service, receiver, work: producer.call, startWorker: service.startWorker },
      processes: Object.assign(service.processes, { producer: [producer] }),
      worker: () => service.processes.worker?.at(-1),
      goneAfterMs: 1.1 * readCoreConfig({}).DELIVERY_LEASE_MS,
      settled: () => producer.call({ do: 'settled' }),
      async stop() {
        await service.stop()
        await receiver.stop()
      },
    }
  },
})

const queue = (
  name: string,
  about: string,
  kind: string,
  openStore: () => Promise<[StartedProcess, string | number]>,
): DeliveryContender => ({
  name,
  about,
  async start() {
    await installPeers()
    const receiver = await startReceiver()
    const port = await receiver.call<number>({ do: 'port' })
    const [store, address] = await openStore()
    const start = (role: string) =>
      startCommandProcess({ entry: 'bench/rivals/queue-process.ts', args: [kind, role, String(address), String(port)] })
    const producer = await start('producer')
    const processes = { store: [store], producer: [producer], worker: [await start('worker')] }
    return {
      ...{ receiver, work: producer.call, processes, goneAfterMs: 0 },
      worker: () => processes.worker.at(-1),
      startWorker: async () => processes.worker.push(await start('worker')),
      settled: () => producer.call({ do: 'settled' }),
      async stop() {
        for (const each of [...processes.worker, producer, store, receiver]) await each.stop()
      },
    }
  },
})

const bullmq = (fsync: 'everysec' | 'always') =>
  queue(
    `BullMQ, ${fsync === 'always' ? 'always synced' : fsync}`,
    `${peerVersion('bullmq')}, concurrency ${concurrency}, 9 attempts, other settings at their defaults; Redis with appendonly yes, appendfsync ${fsync}; one hash written for each attempt`,
    'bullmq',
    async () => {
      const { running, port } = await startRedis(fsync)
      return [running, port]
    },
  )

const onPostgres = (name: string, about: string, kind: string) =>
  queue(
    name,
    `${about} on PostgreSQL with its default settings, one row inserted for each attempt; concurrency ${concurrency}, 9 attempts`,
    kind,
    async () => {
      const { running, uri } = await startPostgres()
      return [running, uri]
    },
  )

export const ours = serviceAs(
  'Service',
  'core and delivery worker as two processes on the embedded MongoDB engine',
  'parts',
)
export const inOneProcess = serviceAs('Service, one process', '`npm run serve` on the embedded MongoDB engine', 'serve')
export const contenders = [
  ours,
  inOneProcess,
  bullmq('everysec'),
  bullmq('always'),
  onPostgres('pg-boss', `${peerVersion('pg-boss')}, woken by NOTIFY, five workers with batches of ten`, 'pg-boss'),
  onPostgres(
    'graphile-worker',
    `${peerVersion('graphile-worker')} with localQueue of ${concurrency * 2} and completions batched for 100 ms`,
    'graphile',
  ),
]
