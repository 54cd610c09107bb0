import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { atFileEnd } from './clean-up.ts'
import { type Operator, operatorOf } from './operator.ts'
import { freePort, type StartedProcess, startProcess, stopStarted } from './processes.ts'
import type { TestDatabase } from './test-database.ts'
import { startVisitor, type Visitor, type VisitorOptions } from './visitor.ts'

/** One process of the service. */
export interface Part {
  url: string
  /** URL of the process's metrics. */
  metricsUrl: string
  process(): StartedProcess
  /** Kills the process with SIGKILL and restarts it on the same port. */
  killAndRestart(): Promise<void>
  kill(): Promise<void>
  start(): Promise<void>
}

/** Running gateways and cores, in this process or in processes of their own. */
export interface RunningStack {
  demo: DemoFile
  /** Data folder with the secrets of the stack. */
  dataDir: string
  cores: { url: string }[]
  gateways: { url: string }[]
  /** Creates clients of a core, which send the demo's service token. */
  operator(core?: number): Operator
  /** Starts a visitor of the demo site at the first gateway. The options can change site and gateway. */
  newVisitor(options?: Partial<VisitorOptions>): Promise<Visitor>
  /** Starts another gateway for the same cores. */
  addGateway(env: Record<string, string>): Promise<{ url: string }>
}

/** A stack whose gateways and cores are processes. */
export interface Stack extends RunningStack {
  cores: Part[]
  gateways: Part[]
  addGateway(env: Record<string, string>): Promise<Part>
  /** Returns the process id of the database engine that the first core hosts. */
  enginePid(): number
}

export interface StackOptions {
  /** Database of the cores. If unset, the first core starts a database engine. */
  database?: TestDatabase
  cores?: number
  gateways?: number
  env?: Record<string, string>
  /** Settings that only the cores get. */
  coreEnv?: Record<string, string>
  /** Folder with the source code that the processes run. Default: this checkout. */
  root?: string
}

/** Starts gateways and cores in separate processes. They share one database engine and one data folder. */
export async function startStack({
  database,
  cores = 1,
  gateways = 1,
  env = {},
  coreEnv = {},
  root,
}: StackOptions): Promise<Stack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'service-stack-'))
  atFileEnd(async () => {
    await stopStarted()
    await rm(dataDir, { recursive: true, force: true })
  })
  const shared = {
    DATA_DIR: dataDir,
    ...(database && { MONGODB_URI: database.uri, MONGODB_DATABASE: database.name }),
    // Logs everything, because the output is checked for secrets at the end of the test run.
    LOG_LEVEL: 'trace',
    ...env,
  }

  const coreParts = await Promise.all(
    Array.from({ length: cores }, (_, index) =>
      startPart('dev/core.ts', `core ${index + 1}`, 'CORE_PORT', { ...shared, ...coreEnv }, root),
    ),
  )
  const coreUrls = coreParts.map(({ url }) => url)
  const gatewayParts = await Promise.all(
    Array.from({ length: gateways }, (_, index) => {
      // Each gateway lists a different core first, so that tests cover wake-ups between cores.
      const preferred = [...coreUrls.slice(index % cores), ...coreUrls.slice(0, index % cores)]
      const settings = { ...shared, CORE_URLS: preferred.join(',') }
      return startPart('gateway/main.ts', `gateway ${index + 1}`, 'GATEWAY_PORT', settings, root)
    }),
  )
  const demo: DemoFile = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  return {
    demo,
    dataDir,
    cores: coreParts,
    gateways: gatewayParts,
    operator: (core = 0) => operatorOf(coreUrls[core]!, demo.serviceToken),
    newVisitor: (options) =>
      startVisitor({ gatewayUrl: gatewayParts[0]!.url, origin: demo.origin, siteKey: demo.siteKey, ...options }),
    enginePid: () => Number(/"enginePid":(\d+)/.exec(coreParts[0]!.process().output())?.[1]),
    addGateway: (env) =>
      startPart('gateway/main.ts', 'another gateway', 'GATEWAY_PORT', {
        DATA_DIR: dataDir,
        CORE_URLS: coreUrls.join(','),
        LOG_LEVEL: 'warn',
        ...env,
      }),
  }
}

async function startPart(
  entry: string,
  name: string,
  portSetting: string,
  env: Record<string, string>,
  root?: string,
): Promise<Part> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const metricsPort = await freePort()
  let running: StartedProcess

  async function start() {
    running = await startProcess({
      entry,
      root,
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
