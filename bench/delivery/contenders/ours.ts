import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readCoreConfig } from '../../../core/config.ts'
import { freePort, type StartedProcess, startCommandProcess, startProcess } from '../../../test/support/processes.ts'
import { scratchFolder } from '../../workspace.ts'
import { type Contender, concurrency, type Delivering } from './contender.ts'
import { producing } from './producer.ts'

/** The service: a core with its embedded engine and a delivery worker, in two processes. */
export const ours: Contender = {
  name: 'Service',
  about: `core and delivery worker as two processes on the embedded MongoDB engine, DELIVERY_CONCURRENCY=${concurrency}, other settings at their defaults; every attempt is logged, every acknowledged write journaled`,
  start: async (receiverPort, profile) => (await startOurs(receiverPort, profile)).delivering,
}

/** Starts the service. Also returns the core, for benches that write to its database. */
export async function startOurs(receiverPort: number, profile?: string) {
  const core = await startOwnCore(profile)
  let worker = await startWorker(core, profile)
  const args = [core.url, join(core.dataDir, 'demo.json'), String(receiverPort)]
  const producer = await startCommandProcess({ entry: 'bench/delivery/contenders/our-producer.ts', args })
  const delivering: Delivering = {
    ...producing(producer),
    worker: () => worker,
    goneAfterMs: 1.1 * readCoreConfig({}).DELIVERY_LEASE_MS,
    async startWorker() {
      worker = await startWorker(core, profile)
    },
    pids: () => [core.running.pid, worker.pid],
    async stop() {
      for (const each of [producer, worker, core.running]) await each.stop()
    },
  }
  return { delivering, core }
}

interface OwnCore {
  running: StartedProcess
  url: string
  dataDir: string
  env: Record<string, string>
  mongodbUri: string
}

/** Starts a core on an empty data folder. */
export async function startOwnCore(profile?: string): Promise<OwnCore> {
  const dataDir = await scratchFolder('core')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = { DATA_DIR: dataDir, DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', LOG_LEVEL: 'warn' }
  const running = await startProcess({
    entry: 'dev/core.ts',
    nodeArgs: profiling(profile, 'core'),
    env: { ...env, CORE_HOST: '127.0.0.1', CORE_PORT: String(port) },
    readyUrl: `${url}/readyz`,
  })
  const { mongodbUri } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  return { running, url, dataDir, env, mongodbUri }
}

async function startWorker({ url, env }: OwnCore, profile: string | undefined): Promise<StartedProcess> {
  const port = await freePort()
  const settings = { CORE_URLS: url, DELIVERY_CONCURRENCY: String(concurrency), DELIVERY_HOST: '127.0.0.1' }
  return startProcess({
    entry: 'delivery/main.ts',
    nodeArgs: profiling(profile, 'worker'),
    env: { ...env, ...settings, DELIVERY_PORT: String(port) },
    readyUrl: `http://127.0.0.1:${port}/readyz`,
  })
}

function profiling(folder: string | undefined, name: string): string[] {
  return folder === undefined
    ? []
    : ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}.${Date.now()}.cpuprofile`]
}
