import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { DemoFile } from '../../core/workspaces/demo-seed.ts'
import { freePort, type StartedProcess, startProcess } from './processes.ts'
import type { TestDatabase } from './test-database.ts'

/** One process of the service. */
export interface Part {
  url: string
  /** URL of its metrics. */
  metricsUrl: string
  process(): StartedProcess
  /** Kills the process with SIGKILL and restarts it on the same port. */
  killAndRestart(): Promise<void>
  kill(): Promise<void>
  start(): Promise<void>
}

export interface Stack {
  demo: DemoFile
  /** Folder of its secrets. */
  dataDir: string
  cores: Part[]
  gateways: Part[]
  /** Starts another gateway for the same cores. */
  addGateway(env: Record<string, string>): Promise<Part>
}

export interface StackOptions {
  /** If unset, the first core hosts an engine. */
  database?: TestDatabase
  cores?: number
  gateways?: number
  env?: Record<string, string>
  /** Settings of the cores only. */
  coreEnv?: Record<string, string>
}

/** Starts gateways and cores in separate processes with one engine and one data folder. */
export async function startStack({
  database,
  cores = 1,
  gateways = 1,
  env = {},
  coreEnv = {},
}: StackOptions): Promise<Stack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'service-stack-'))
  afterAll(() => rm(dataDir, { recursive: true, force: true }))
  const shared = {
    DATA_DIR: dataDir,
    ...(database && { MONGODB_URI: database.uri, MONGODB_DATABASE: database.name }),
    // The whole output is checked for secrets at the end of the run.
    LOG_LEVEL: 'trace',
    ...env,
  }

  const coreParts = await Promise.all(
    Array.from({ length: cores }, (_, index) =>
      startPart('core/main.ts', `core ${index + 1}`, 'CORE_PORT', { ...shared, ...coreEnv }),
    ),
  )
  const coreUrls = coreParts.map(({ url }) => url)
  const gatewayParts = await Promise.all(
    Array.from({ length: gateways }, (_, index) => {
      // Each gateway prefers a different core, so that tests cover traffic between cores.
      const preferred = [...coreUrls.slice(index % cores), ...coreUrls.slice(0, index % cores)]
      return startPart('gateway/main.ts', `gateway ${index + 1}`, 'GATEWAY_PORT', {
        ...shared,
        CORE_URLS: preferred.join(','),
      })
    }),
  )
  const demo: DemoFile = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  return {
    demo,
    dataDir,
    cores: coreParts,
    gateways: gatewayParts,
    addGateway: (env) =>
      startPart('gateway/main.ts', 'another gateway', 'GATEWAY_PORT', {
        DATA_DIR: dataDir,
        CORE_URLS: coreUrls.join(','),
        LOG_LEVEL: 'warn',
        ...env,
      }),
  }
}

async function startPart(entry: string, name: string, portSetting: string, env: Record<string, string>): Promise<Part> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const metricsPort = await freePort()
  let running: StartedProcess

  async function start() {
    running = await startProcess({
      entry,
      name,
      env: { ...env, [portSetting]: String(port), METRICS_PORT: String(metricsPort) },
      readyUrl: `${url}/readyz`,
    })
  }

  async function kill() {
    running.kill('SIGKILL')
    await running.exited
  }

  await start()
  return {
    url,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    start,
    kill,
    process: () => running,
    async killAndRestart() {
      await kill()
      await start()
    },
  }
}
