import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DemoFile } from '../../dev/demo-seed.ts'
import type { ReplicaSet } from '../replica-set/replica-set.ts'
import { type FaultyProxy, startFaultyProxy } from '../support/faulty-proxy.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { type Engine, externalEngine, startEngine } from './engine.ts'
import { createRestoreTurns, type RestoreTurns } from './restore-turns.ts'

/** A process of the service. */
export interface Part {
  name: string
  /** Address of the process itself, not of the proxy in front of it. */
  url: string
  /** Port of its metrics. */
  metricsPort: number
  pid(): number
  output(): string
  /** Starts the process, from the source in this folder. Default: the service's first folder. */
  start(root?: string): Promise<void>
  /** Kills the process with SIGKILL. */
  kill(): Promise<void>
  /** Sends SIGTERM. Resolves with the time until the exit, and the exit code. */
  stop(): Promise<{ ms: number; code: number | null }>
  signal(signal: NodeJS.Signals): void
  /** Shifts the clock of the process by this number of milliseconds. */
  moveClock(ms: number): Promise<void>
}

export interface Core extends Part {
  /** Proxy between the core and the database engine. */
  proxy: FaultyProxy
  /** Proxy between the core and its callers: gateways and workers. */
  callers: FaultyProxy
}

export interface Gateway extends Part {
  /** Proxy between visitors and the gateway. */
  proxy: FaultyProxy
  /** Address of the proxy. */
  publicUrl: string
}

export interface Service extends RestoreTurns {
  demo: DemoFile
  dataDir: string
  deliveryToken: string
  engine: Engine
  /** The replica set, if it is simulated. */
  replicaSet?: ReplicaSet | undefined
  cores: Core[]
  gateways: Gateway[]
  workers: Part[]
  /**
   * Stores the output of each process and the files of the database in the data folder. `stop` then keeps the folder.
   */
  keepFolder(): Promise<void>
  stop(): Promise<void>
}

export interface ServiceOptions {
  /** Database to use instead of an engine of this run. Faults of the engine are then impossible. */
  database?: TestDatabase | undefined
  /** The replica set of `database`, if it is simulated. */
  replicaSet?: ReplicaSet | undefined
  cores?: number
  gateways?: number
  workers?: number
  chance?: () => number
  env?: Record<string, string>
  /** Folder of the source that gateways, cores and workers run. Default: this checkout. */
  root?: string
}

export const leaseMs = 1_500

/**
 * Starts gateways, cores, workers and engine as processes. These connections use proxies that tests
 * can break: core to engine, gateway or worker to core, visitor to gateway.
 */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const { cores = 2, gateways = 2, workers = 2, chance, env = {}, root, database, replicaSet } = options
  const dataDir = await mkdtemp(join(tmpdir(), 'service-chaos-'))
  const shared = {
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_FACTOR: '100000',
    HEARTBEAT_SECONDS: '1',
    DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32',
    DELIVERY_LEASE_MS: String(leaseMs),
    // A simulated replica set runs in this process, beside all clients.
    MONGODB_TIMEOUT_MS: replicaSet ? '5000' : '2000',
    ...env,
  }
  const { engine, stop: stopEngine } = database ? externalEngine(database) : await startEngine(dataDir)
  const socketPath = join(dataDir, 'engine.sock')

  const coreParts: Core[] = []
  // Starts the cores one after the other, because the first core creates the secrets and the demo.
  for (let index = 0; index < cores; index += 1) {
    const proxy = await startFaultyProxy(socketPath, chance)
    const proxied = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true&w=1&journal=true`
    const settings = { ...shared, MONGODB_URI: database?.uri ?? proxied, MONGODB_DATABASE: engine.database }
    const core = await newPart('dev/core.ts', `core ${index + 1}`, 'CORE_PORT', settings, root)
    const callers = await startFaultyProxy(Number(new URL(core.url).port), chance)
    coreParts.push({ ...core, proxy, callers })
  }
  const urls = coreParts.map(({ callers }) => `http://127.0.0.1:${callers.port}`)
  const gatewayParts = await Promise.all(
    Array.from({ length: gateways }, async (_, index): Promise<Gateway> => {
      const preferred = [...urls.slice(index % cores), ...urls.slice(0, index % cores)].join(',')
      const settings = { ...shared, CORE_URLS: preferred }
      const gateway = await newPart('gateway/main.ts', `gateway ${index + 1}`, 'GATEWAY_PORT', settings, root)
      const proxy = await startFaultyProxy(Number(new URL(gateway.url).port), chance)
      return { ...gateway, proxy, publicUrl: `http://127.0.0.1:${proxy.port}` }
    }),
  )
  const workerParts = await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      newPart(
        'delivery/main.ts',
        `worker ${index + 1}`,
        'DELIVERY_PORT',
        { ...shared, CORE_URLS: urls.join(',') },
        root,
      ),
    ),
  )

  let isKept = false
  return {
    ...createRestoreTurns(),
    demo: JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8')),
    dataDir,
    deliveryToken: await readFile(join(dataDir, 'delivery.token'), 'utf8'),
    engine,
    replicaSet,
    cores: coreParts,
    gateways: gatewayParts,
    workers: workerParts,
    async keepFolder() {
      isKept = true
      for (const { name, output } of [...coreParts, ...gatewayParts, ...workerParts, { name: 'engine', ...engine }])
        await writeFile(join(dataDir, `${name}.log`), output())
      await engine.copyFiles(join(dataDir, 'copy of mongodb'))
    },
    async stop() {
      await Promise.all([...gatewayParts, ...workerParts].map((part) => part.stop()))
      await Promise.all(coreParts.map((part) => part.stop()))
      await stopEngine()
      const proxies = [
        ...coreParts.flatMap(({ proxy, callers }) => [proxy, callers]),
        ...gatewayParts.map(({ proxy }) => proxy),
      ]
      await Promise.all(proxies.map((proxy) => proxy.close()))
      if (!isKept) await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Starts a process on a free port and waits until it is ready. */
async function newPart(
  entry: string,
  name: string,
  portSetting: string,
  env: Record<string, string>,
  firstRoot?: string,
): Promise<Part> {
  const port = await freePort()
  const metricsPort = await freePort()
  const url = `http://127.0.0.1:${port}`
  const clock = join(env.DATA_DIR ?? '', `clock of ${name}`)
  await writeFile(clock, '0')
  let running: StartedProcess

  async function start(root = firstRoot) {
    running = await startProcess({
      entry,
      root,
      name,
      env: { ...env, [portSetting]: String(port), METRICS_PORT: String(metricsPort), CHAOS_CLOCK: clock },
      preload: ['test/chaos/moved-clock.ts'],
      readyUrl: `${url}/livez`,
    })
  }

  await start()
  await until(`${name} to be ready`, () => isReady(url))
  return {
    name,
    url,
    metricsPort,
    start,
    pid: () => running.pid,
    output: () => running.output(),
    async kill() {
      running.kill('SIGKILL')
      await running.exited
    },
    async stop() {
      const began = performance.now()
      running.kill('SIGCONT')
      await running.stop()
      return { ms: performance.now() - began, code: (await running.exited).code }
    },
    signal: (signal) => running.kill(signal),
    moveClock: (ms) => writeFile(clock, String(ms)),
  }
}

export async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.status === 200
}
