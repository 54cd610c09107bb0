import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { buildConsoleIfStale } from '../console/build.ts'
import { clusterSettings } from '../test/cluster/config.ts'
import { operatorOf } from '../test/support/operator.ts'
import {
  type CommandProcess,
  freePort,
  type StartedProcess,
  startCommandProcess,
  startProcess,
} from '../test/support/processes.ts'
import { until } from '../test/support/until.ts'
import { type Contender, type Running, type StartOptions, scratchFolder } from './measure.ts'

const root = join(import.meta.dirname, '..')
export const pageOrigin = 'http://localhost:8081'

export interface Access {
  ports: number[]
  coreUrl: string
  serviceToken: string
  workspaceId: string
  siteKey: string
  mongodbUri: string
  database: string
}

export interface Service {
  access: Access
  /** File with the access, for other processes. */
  accessFile: string
  metricsUrls: string[]
  processes: Record<string, StartedProcess[]>
  startWorker(): Promise<StartedProcess>
  stop(): Promise<void>
}

export interface ServiceOptions extends StartOptions {
  /** `parts`: gateways, cores and workers as processes. `serve`: all in one, as `npm run serve`. */
  layout?: 'parts' | 'serve'
  cores?: number
  gateways?: number
  worker?: boolean
  /** Node arguments of the processes, by role. */
  nodeArgs?: Record<string, string[]>
  /** Folder of the checkout to start. Default: this one. */
  root?: string | undefined
  dataDir?: string
}

const dataFolders = {
  core: 'dev/core.ts',
  gateway: 'gateway/main.ts',
  worker: 'delivery/main.ts',
  serve: 'serve/main.ts',
}

/** Starts the service with very high rate limits. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const { layout = 'parts', cores = 1, gateways = 1, worker = false, root: other = root } = options
  const dataDir = options.dataDir ?? (await scratchFolder('service'))
  const cluster = clusterSettings()
  const processes: Service['processes'] = {}
  const metricsUrls: string[] = []
  if (cluster.MONGODB_URI === undefined)
    processes.engine = [await startCommandProcess({ entry: 'bench/engine.ts', args: [dataDir] })]
  const [engine] = processes.engine ?? []
  const mongodbUri = cluster.MONGODB_URI ?? (await (engine as CommandProcess).call<string>({}))
  const database = cluster.MONGODB_DATABASE ?? 'service'
  const shared = {
    ...{ DATA_DIR: dataDir, MONGODB_URI: mongodbUri, MONGODB_DATABASE: database, LOG_LEVEL: 'warn' },
    ...{ RATE_LIMIT_FACTOR: '1000000', GRANT_LIFETIME_SECONDS: '86400', DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' },
  }

  async function start(
    role: keyof typeof dataFolders,
    ports: Record<string, number>,
    more: Record<string, string> = {},
  ) {
    const metricsPort = await freePort()
    metricsUrls.push(`http://127.0.0.1:${metricsPort}/metrics`)
    const settings = Object.entries(ports).flatMap(([name, port]) => [
      [`${name}_PORT`, String(port)],
      [`${name}_HOST`, '127.0.0.1'],
    ])
    const running = await startProcess({
      entry: dataFolders[role],
      root: other,
      nodeArgs: [
        ...(await scriptFlags(other, role)),
        ...(options.nodeArgs?.[role] ?? []),
        ...profiling(options.profile, role),
      ],
      env: { ...shared, METRICS_PORT: String(metricsPort), ...Object.fromEntries(settings), ...more },
      readyUrl: `http://127.0.0.1:${Object.values(ports)[0]}/readyz`,
    })
    processes[role] = [...(processes[role] ?? []), running]
    return running
  }

  const corePorts = await Promise.all(Array.from({ length: layout === 'serve' ? 1 : cores }, freePort))
  const ports = await Promise.all(Array.from({ length: gateways }, freePort))
  const urls = corePorts.map((port) => `http://127.0.0.1:${port}`)
  const startWorker = async () =>
    start('worker', { DELIVERY: await freePort() }, { CORE_URLS: urls.join(), DELIVERY_CONCURRENCY: '50' })
  if (layout === 'serve') {
    await buildConsoleIfStale()
    await start('serve', { GATEWAY: ports[0]!, CORE: corePorts[0]! }, { DELIVERY_CONCURRENCY: '50' })
  } else {
    for (const CORE of corePorts) await start('core', { CORE })
    // The gateways use the last core, and operators the first.
    for (const GATEWAY of ports) await start('gateway', { GATEWAY }, { CORE_URLS: urls.toReversed().join() })
    if (worker) await startWorker()
  }
  const site = await siteOf(dataDir, layout, urls[0]!)
  const access = { ports, coreUrl: urls[0]!, mongodbUri, database, ...site }
  const accessFile = join(dataDir, 'bench.json')
  await writeFile(accessFile, JSON.stringify(access), { mode: 0o600 })
  return {
    ...{ access, accessFile, metricsUrls, processes, startWorker },
    async stop() {
      for (const each of Object.values(processes).flat().toReversed()) await each.stop()
    },
  }
}

/** The demo of `npm run core`, or a website of the first workspace of `npm run serve`. */
async function siteOf(dataDir: string, layout: 'parts' | 'serve', coreUrl: string) {
  const file = join(dataDir, layout === 'serve' ? 'admin.json' : 'demo.json')
  const { serviceToken, workspaceId, siteKey } = JSON.parse(await readFile(file, 'utf8'))
  const { workspaces } = operatorOf(coreUrl, serviceToken)
  if (layout === 'parts') {
    await workspaces.updateInstallation({ siteKey, origins: [pageOrigin] })
    return { serviceToken, workspaceId, siteKey }
  }
  const { connection } = await workspaces.createConnection({ workspaceId, name: 'A shop' })
  const { connectionId } = connection!
  const { installation } = await workspaces.createInstallation({ connectionId, origins: [pageOrigin] })
  return { serviceToken, workspaceId, siteKey: installation!.publicSiteKey }
}

/** Returns the Node flags of the npm script that starts such a process. */
async function scriptFlags(folder: string, script: string): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const flags = String(scripts[script] ?? '').match(/--import \S+|--(?!import|env-file)\S+/g) ?? []
  return flags.flatMap((flag) => flag.split(' '))
}

export function profiling(folder: string | undefined, name: string): string[] {
  if (folder === undefined) return []
  return ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}.${Date.now()}.cpuprofile`]
}

export const startLoad = (target: string): Promise<CommandProcess> =>
  startCommandProcess({ entry: 'bench/load.ts', args: [target] })

/**
 * Follows the entries of search and feed for each message, and the ends of deliveries. Counts of whole
 * collections cost next to nothing.
 */
export async function followDeferred({ mongodbUri, database, workspaceId }: Access) {
  const client = await new MongoClient(mongodbUri).connect()
  const db = client.db(database)
  const written = () =>
    Promise.all(['searchEntries', 'feedEntries'].map((name) => db.collection(name).estimatedDocumentCount()))
  const deliveries = db.collection('deliveries')
  return {
    written,
    /** Resolves when the entries of so many messages more than `before` are written. */
    messages: (before: number[], count: number) =>
      until('the entries of the messages', async () =>
        (await written()).every((now, index) => now >= before[index]! + count),
      ),
    /** Whether all deliveries have ended, and the feed has their ends. */
    areDelivered: async () =>
      (await deliveries.findOne({ workspaceId, status: { $in: ['pending', 'sending'] } })) === null &&
      (await deliveries.findOne({ unannounced: true })) === null,
    /** Resolves when nothing was written for two seconds. */
    async rest() {
      for (let before: number[] = []; ; ) {
        const now = await written()
        if (now.join() === before.join()) return
        before = now
        await delay(2_000)
      }
    },
    close: () => client.close(),
  }
}

/** A running service with its load. Its work is that of `load.ts`. */
export interface LoadedService extends Running {
  service: Service
}

export const serviceWith = (name: string, about: string, options: ServiceOptions = {}): Contender<LoadedService> => ({
  name,
  about,
  async start(given) {
    const service = await startService({ ...options, ...given })
    const load = await startLoad(service.accessFile)
    const deferred = await followDeferred(service.access)
    await deferred.rest()
    let before: number[] = []
    let sent = 0
    return {
      ...{ service, processes: service.processes },
      async work<Answer>(command: object) {
        before = await deferred.written()
        const answer = await load.call<Answer & { sent?: number }>(command)
        sent = answer?.sent ?? 0
        return answer
      },
      settled: async () => void (await deferred.messages(before, sent)),
      stored: async () => (await deferred.written())[0]!,
      async stop() {
        await deferred.close()
        await load.stop()
        await service.stop()
      },
    }
  },
})

const contract =
  'on the embedded MongoDB engine; the full contract (grant, origin, idempotency, event log), every acknowledged message journaled; very high rate limits, other settings at their defaults'
export const inParts = serviceWith('Service', `gateway and core as two processes ${contract}`)
export const inOne = serviceWith(
  'Service, one process',
  `\`npm run serve\`: gateway, core and delivery worker in one process ${contract}`,
  { layout: 'serve' },
)
