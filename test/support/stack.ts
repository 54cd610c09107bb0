import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { DemoFile } from '../../core/workspaces/demo-seed.ts'
import { freePort, type StartedProcess, startProcess } from './processes.ts'
import type { TestDatabase } from './test-database.ts'

/** One part of the service that runs as a process of its own. */
export interface Part {
  url: string
  /** Where its metrics are scraped. */
  metricsUrl: string
  process(): StartedProcess
  /** Kills it as a power cut would, and starts it again on the same port. */
  killAndRestart(): Promise<void>
  kill(): Promise<void>
  start(): Promise<void>
}

export interface Stack {
  demo: DemoFile
  /** Where its secrets are. */
  dataDir: string
  cores: Part[]
  gateways: Part[]
  /** One more, over the same cores. */
  addGateway(env: Record<string, string>): Promise<Part>
}

export interface StackOptions {
  /** Left out: an engine of their own, which the first core hosts. */
  database?: TestDatabase
  cores?: number
  gateways?: number
  env?: Record<string, string>
  /** For the cores alone. */
  coreEnv?: Record<string, string>
}

/** Gateways and cores as processes of their own over one engine and one data folder, as an operator would run them. */
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
    // All of it is searched for what must not be in a log, at the end of the run.
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
      // Each gateway prefers a core of its own, so that what crosses the cores is what the test looks at.
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
