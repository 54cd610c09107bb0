import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { enginePlace } from '../../dev/engine/engine-place.ts'
import { type Link, startLink } from '../support/link.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

/** A process of the service. */
export interface Part {
  name: string
  /** Address of the process itself, not of the link (a TCP proxy) in front of it. */
  url: string
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
  /** Link between the core and the database engine. */
  link: Link
  /** Link between the core and its callers: gateways and workers. */
  callers: Link
}

export interface Gateway extends Part {
  /** Link between visitors and the gateway. */
  link: Link
  /** Address of the link. */
  publicUrl: string
}

export interface Engine {
  /** URI of the engine itself, not of a link. */
  uri: string
  /** Name of the cores' database. */
  database: string
  pid(): number
  kill(): void
  signal(signal: NodeJS.Signals): void
  /** False if the machine does not allow mount namespaces. The disk then cannot be filled. */
  hasOwnDisk: boolean
  fillDisk(): Promise<void>
  emptyDisk(): Promise<void>
}

export interface Service {
  demo: DemoFile
  dataDir: string
  deliveryToken: string
  engine: Engine
  cores: Core[]
  gateways: Gateway[]
  workers: Part[]
  stop(): Promise<void>
}

export interface ServiceOptions {
  /** Database to use instead of an engine of this run. Faults of the engine are then impossible. */
  database?: TestDatabase | undefined
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
 * Starts gateways, cores, workers and engine as processes. These connections use links that tests
 * can break: core to engine, gateway or worker to core, visitor to gateway.
 */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const { cores = 2, gateways = 2, workers = 2, chance, env = {}, root, database } = options
  const dataDir = await mkdtemp(join(tmpdir(), 'service-chaos-'))
  const shared = {
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_FACTOR: '100000',
    HEARTBEAT_SECONDS: '1',
    DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32',
    DELIVERY_LEASE_MS: String(leaseMs),
    MONGODB_TIMEOUT_MS: '2000',
    ...env,
  }
  const { engine, stop: stopEngine } = database ? externalEngine(database) : await startEngine(dataDir)
  const socketPath = join(dataDir, 'engine.sock')

  const coreParts: Core[] = []
  // Starts the cores one after the other, because the first core creates the secrets and the demo.
  for (let index = 0; index < cores; index += 1) {
    const link = await startLink(socketPath, chance)
    const linked = `mongodb://127.0.0.1:${link.port}/?directConnection=true&w=1&journal=true`
    const settings = { ...shared, MONGODB_URI: database?.uri ?? linked, MONGODB_DATABASE: engine.database }
    const core = await newPart('dev/core.ts', `core ${index + 1}`, 'CORE_PORT', settings, root)
    const callers = await startLink(Number(new URL(core.url).port), chance)
    coreParts.push({ ...core, link, callers })
  }
  const urls = coreParts.map(({ callers }) => `http://127.0.0.1:${callers.port}`)
  const gatewayParts = await Promise.all(
    Array.from({ length: gateways }, async (_, index): Promise<Gateway> => {
      const preferred = [...urls.slice(index % cores), ...urls.slice(0, index % cores)].join(',')
      const settings = { ...shared, CORE_URLS: preferred }
      const gateway = await newPart('gateway/main.ts', `gateway ${index + 1}`, 'GATEWAY_PORT', settings, root)
      const link = await startLink(Number(new URL(gateway.url).port), chance)
      return { ...gateway, link, publicUrl: `http://127.0.0.1:${link.port}` }
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

  return {
    demo: JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8')),
    dataDir,
    deliveryToken: await readFile(join(dataDir, 'delivery.token'), 'utf8'),
    engine,
    cores: coreParts,
    gateways: gatewayParts,
    workers: workerParts,
    async stop() {
      await Promise.all([...gatewayParts, ...workerParts].map((part) => part.stop()))
      await Promise.all(coreParts.map((part) => part.stop()))
      await stopEngine()
      const links = [
        ...coreParts.flatMap(({ link, callers }) => [link, callers]),
        ...gatewayParts.map(({ link }) => link),
      ]
      await Promise.all(links.map((link) => link.close()))
      await rm(dataDir, { recursive: true, force: true })
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
  const url = `http://127.0.0.1:${port}`
  const clock = join(env.DATA_DIR ?? '', `clock of ${name}`)
  await writeFile(clock, '0')
  let running: StartedProcess

  async function start(root = firstRoot) {
    running = await startProcess({
      entry,
      root,
      name,
      env: { ...env, [portSetting]: String(port), CHAOS_CLOCK: clock },
      preload: ['test/chaos/moved-clock.ts'],
      readyUrl: `${url}/livez`,
    })
  }

  await start()
  await until(`${name} to be ready`, () => isReady(url))
  return {
    name,
    url,
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

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const run = promisify(execFile)
const diskSize = '512m'

/**
 * Returns a command prefix that runs a program in a mount namespace, with a small disk at the
 * database folder. It needs no root rights. Returns an empty list if the machine does not allow
 * namespaces.
 */
async function smallDiskCommand(databaseDir: string): Promise<string[]> {
  const unshare = ['unshare', '--user', '--map-root-user', '--mount']
  const mount = `mount -t tmpfs -o size=${diskSize} tmpfs "$0"`
  const [program = '', ...args] = [...unshare, 'sh', '-c', mount, databaseDir]
  await mkdir(databaseDir)
  const isAllowed = await run(program, args).then(
    () => true,
    () => false,
  )
  return isAllowed ? [...unshare, 'sh', '-c', `${mount} && exec "$@"`, databaseDir] : []
}

/** A database whose processes the run does not control. */
function externalEngine({ uri, name }: TestDatabase): { engine: Engine; stop(): Promise<void> } {
  const absent = () => {
    throw new Error('the engine is not part of this run')
  }
  const control = { pid: absent, kill: absent, signal: absent, fillDisk: absent, emptyDisk: absent }
  return { engine: { uri, database: name, hasOwnDisk: false, ...control }, stop: async () => {} }
}

async function startEngine(dataDir: string): Promise<{ engine: Engine; stop(): Promise<void> }> {
  const { databaseDir, uri } = enginePlace(dataDir)
  const through = await smallDiskCommand(databaseDir)
  const entry = 'test/support/engine-holder.ts'
  const holder = await startProcess({ entry, name: 'engine', args: [dataDir], through })
  const pid = () => Number([...holder.output().matchAll(/"enginePid":(\d+)/g)].at(-1)?.[1])
  await until('the engine', () => holder.output().includes('"msg":"attached to the database engine"'))

  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(pid(), name)
    } catch {
      // No engine is running: the previous one has ended, and the next one has not started.
    }
  }
  // Path of the file that fills the small disk. /proc/PID/root leads into the mount namespace.
  const filler = join(`/proc/${holder.pid}/root`, databaseDir, 'filler')

  return {
    engine: {
      uri,
      database: 'service',
      pid,
      kill: () => signal('SIGKILL'),
      signal,
      hasOwnDisk: through.length > 0,
      // dd fails when the disk is full.
      fillDisk: () => run('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k']).then(fail, () => {}),
      emptyDisk: () => rm(filler, { force: true }),
    },
    async stop() {
      signal('SIGCONT')
      const last = pid()
      await holder.stop()
      await until('the engine to end', () => !isAlive(last))
    },
  }
}

function fail() {
  throw new Error('the disk did not fill up')
}
