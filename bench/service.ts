import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { clusterSettings } from '../test/cluster/config.ts'
import { freePort, type StartedProcess, startProcess } from '../test/support/processes.ts'
import { scratchFolder } from './workspace.ts'

/** A core with its embedded database engine. Cores on one data folder share one engine. */
export interface BenchCore {
  running: StartedProcess
  url: string
  dataDir: string
  /** Environment variables for other processes of the same deployment. */
  env: Record<string, string>
  mongodbUri: string
}

export interface BenchGateway {
  running: StartedProcess
  port: number
}

interface StartOptions {
  /** Folder for CPU profiles. */
  profile?: string | undefined
  env?: Record<string, string>
  /** Root folder of the checkout to start. Default: this one. */
  root?: string | undefined
}

/** Starts a core on an empty data folder and database, or on the folder and database of another core. */
export async function startCore({
  profile,
  env = {},
  root,
  beside,
}: StartOptions & { beside?: BenchCore } = {}): Promise<BenchCore> {
  const dataDir = beside?.dataDir ?? (await scratchFolder('core'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const database = beside?.env ?? clusterSettings()
  const shared = { DATA_DIR: dataDir, LOG_LEVEL: 'warn', METRICS_PORT: '0', ...database, ...env }
  const running = await startProcess({
    entry: 'dev/core.ts',
    root,
    nodeArgs: profiling(profile, 'core'),
    env: { ...shared, CORE_HOST: '127.0.0.1', CORE_PORT: String(port) },
    readyUrl: `${url}/readyz`,
  })
  const { mongodbUri } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  return { running, url, dataDir, env: shared, mongodbUri }
}

/** Starts a gateway for one core, with very high rate limits. */
export async function startGateway(
  core: BenchCore,
  { profile, env = {}, root }: StartOptions = {},
): Promise<BenchGateway> {
  const port = await freePort()
  const running = await startProcess({
    entry: 'gateway/main.ts',
    root,
    nodeArgs: profiling(profile, 'gateway'),
    env: {
      ...core.env,
      CORE_URLS: core.url,
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      RATE_LIMIT_FACTOR: '1000000',
      ...env,
    },
    readyUrl: `http://127.0.0.1:${port}/readyz`,
  })
  return { running, port }
}

export function profiling(folder: string | undefined, name: string): string[] {
  return folder === undefined
    ? []
    : ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}.${Date.now()}.cpuprofile`]
}
