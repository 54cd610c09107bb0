import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, type StartedProcess, startCommandProcess, startProcess } from '../../test/support/processes.ts'
import { scratchFolder } from '../workspace.ts'
import type { Contender, Streaming } from './contender.ts'
import { heapProbe } from './memory.ts'
import type { SeedCommand } from './our-seeder.ts'

/** Sessions, created once and reused at every start of the service. */
let seeded: Promise<{ dataDir: string; visitorsFile: string }> | undefined

/** The service: gateway and core in separate processes, with the embedded engine. */
export const ours: Contender = {
  name: 'Service',
  about:
    'gateway and core as two processes, with the embedded MongoDB engine; grants are checked, every event comes by an agent’s Connect call and is in the journaled log before it goes out',
  async start({ gateways: count, visitors, profile }) {
    seeded ??= seed(visitors)
    const { dataDir, visitorsFile } = await seeded
    const core = await startCore(dataDir, profile)
    const gateways = await Promise.all(Array.from({ length: count }, () => startGateway(dataDir, core.url, profile)))
    const publisher = await startCommandProcess({
      entry: 'bench/streams/our-publisher.ts',
      args: [core.url, join(dataDir, 'demo.json')],
    })
    const streaming: Streaming = {
      ports: gateways.map(({ port }) => port),
      visitorsFile,
      publisher,
      gateways: gateways.map(({ running }) => running),
      behind: [core.running],
      async heapBytes() {
        const each = await Promise.all(gateways.map(({ heapBytes }) => heapBytes()))
        return { gateway: each.reduce((sum, bytes) => sum + bytes, 0), behind: await core.heapBytes() }
      },
      async stop() {
        await publisher.stop()
        for (const { running } of gateways) await running.stop()
        await core.running.stop()
      },
    }
    return streaming
  },
}

async function seed(count: number): Promise<{ dataDir: string; visitorsFile: string }> {
  const dataDir = await scratchFolder('streams')
  const visitorsFile = join(dataDir, 'visitors.json')
  const core = await startCore(dataDir)
  const seeder = await startCommandProcess({ entry: 'bench/streams/our-seeder.ts', args: [dataDir, visitorsFile] })
  await seeder.call({ count } satisfies SeedCommand)
  await seeder.stop()
  await core.running.stop()
  return { dataDir, visitorsFile }
}

interface OwnPart {
  running: StartedProcess
  port: number
  url: string
  heapBytes(): Promise<number>
}

const startCore = (dataDir: string, profile?: string) =>
  startOwn('core', { DATA_DIR: dataDir, GRANT_LIFETIME_SECONDS: '86400' }, profile)

const startGateway = (dataDir: string, coreUrl: string, profile?: string) =>
  startOwn('gateway', { DATA_DIR: dataDir, CORE_URLS: coreUrl, RATE_LIMIT_FACTOR: '1000' }, profile)

async function startOwn(part: 'core' | 'gateway', env: Record<string, string>, profile?: string): Promise<OwnPart> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const { nodeArgs, heapBytes } = await heapProbe()
  const name = part.toUpperCase()
  const running = await startProcess({
    entry: part === 'core' ? 'dev/core.ts' : 'gateway/main.ts',
    nodeArgs: [...(await scriptFlags(part)), ...nodeArgs, ...profiling(profile, part)],
    env: { ...env, LOG_LEVEL: 'warn', [`${name}_HOST`]: '127.0.0.1', [`${name}_PORT`]: String(port) },
    readyUrl: `${url}/readyz`,
  })
  return { running, port, url, heapBytes }
}

/** Node flags in the npm script that starts a process of the service. */
async function scriptFlags(part: string): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile(join(import.meta.dirname, '../../package.json'), 'utf8'))
  return String(scripts[part])
    .split(' ')
    .filter((word) => word.startsWith('--'))
}

function profiling(folder: string | undefined, part: string): string[] {
  if (folder === undefined) return []
  const name = `${part}.${Date.now()}`
  return [
    ...['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}.cpuprofile`],
    ...['--heap-prof', `--heap-prof-dir=${folder}`, `--heap-prof-name=${name}.heapprofile`],
  ]
}
