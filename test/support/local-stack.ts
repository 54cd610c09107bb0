import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeAll, inject } from 'vitest'
import { readCoreConfig } from '../../core/config.ts'
import { serveCore } from '../../core/server.ts'
import { startCore } from '../../core/start-core.ts'
import { connectCores } from '../../core-client/connect-cores.ts'
import { type DemoFile, seedDemo } from '../../dev/demo-seed.ts'
import { nudgeOfDatabase } from '../../dev/engine/nudge.ts'
import { createGateway } from '../../gateway/app.ts'
import { readConfig } from '../../gateway/config.ts'
import { createGatewayMetrics } from '../../gateway/metrics.ts'
import { dataFolderSecrets, withDataFolderSecrets } from '../../serve/data-folder.ts'
import { atFileEnd } from './clean-up.ts'
import { freePort } from './free-port.ts'
import { latest } from './latest.ts'
import { operatorOf } from './operator.ts'
import type { RunningStack } from './stack.ts'
import { type TestDatabase, testDatabase } from './test-database.ts'
import { startVisitor } from './visitor.ts'

const root = join(import.meta.dirname, '../..')

/** A core or gateway that runs in this process. */
export interface LocalPart {
  url: string
  stop(): Promise<void>
  /** Starts the core or gateway again on the same port. */
  start(): Promise<void>
}

/** A stack whose gateways and cores run in the process of the test. */
export interface LocalStack extends RunningStack {
  cores: LocalPart[]
  gateways: LocalPart[]
}

export interface LocalStackOptions {
  database: TestDatabase
  cores?: number
  gateways?: number
  env?: Record<string, string>
  /** Settings that only the cores get. */
  coreEnv?: Record<string, string>
}

/**
 * Starts gateways and cores in this process. They use HTTP between each other and stop at the end of the test file.
 * For tests that kill no process: `startStack` starts processes, which takes seconds of processor time.
 */
export async function startLocalStack({
  database,
  cores = 1,
  gateways = 1,
  env = {},
  coreEnv = {},
}: LocalStackOptions): Promise<LocalStack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'service-local-'))
  // Logs everything, because the output is checked for secrets at the end of the test run.
  const output = pino.destination({ dest: join(inject('processOutput'), `local-${process.pid}.log`), sync: false })
  const logger = pino({ level: 'trace' }, output)
  const settings = { MONGODB_URI: database.uri, MONGODB_DATABASE: database.name, ...env, ...coreEnv }
  const coreParts: LocalPart[] = []
  const gatewayParts: LocalPart[] = []
  const added: LocalPart[] = []
  let demo: DemoFile | undefined
  atFileEnd(async () => {
    await Promise.all([...gatewayParts, ...added].map((gateway) => gateway.stop()))
    await Promise.all(coreParts.map((core) => core.stop()))
    // Keep the file open: a call may still fail, and be logged, after the core has stopped.
    output.flushSync()
    await rm(dataDir, { recursive: true, force: true })
  })

  for (let index = 0; index < cores; index += 1) coreParts.push(await addCore())
  const coreUrls = coreParts.map(({ url }) => url)
  for (let index = 0; index < gateways; index += 1) {
    // Each gateway lists a different core first, so that tests cover wake-ups between cores.
    const preferred = [...coreUrls.slice(index % cores), ...coreUrls.slice(0, index % cores)]
    gatewayParts.push(await startGateway(env, preferred))
  }
  const { origin, siteKey, serviceToken } = demo!
  return {
    demo: demo!,
    dataDir,
    cores: coreParts,
    gateways: gatewayParts,
    async addGateway(gatewayEnv) {
      const gateway = await startGateway(gatewayEnv, coreUrls)
      added.push(gateway)
      return gateway
    },
    operator: (core = 0) => operatorOf(coreUrls[core]!, serviceToken),
    newVisitor: (options) => startVisitor({ gatewayUrl: gatewayParts[0]!.url, origin, siteKey, ...options }),
  }

  async function addCore(): Promise<LocalPart> {
    const port = await freePort()
    return startPart(port, async () => {
      const config = await withDataFolderSecrets(readCoreConfig({ CORE_PORT: `${port}`, ...settings }), dataDir)
      const nudge = nudgeOfDatabase(database.uri, database.name)
      const core = await startCore(config, { logger, ...(nudge && { nudge }) })
      demo ??= await seedDemo(core, config, dataDir)
      const server = await serveCore(core, { host: '', port })
      return async () => {
        await server.close()
        await core.stop()
        nudge?.close()
      }
    })
  }

  async function startGateway(gatewayEnv: Record<string, string>, urls: string[]): Promise<LocalPart> {
    const port = await freePort()
    const config = readConfig({ CORE_URLS: urls.join(), ...gatewayEnv }, await dataFolderSecrets(dataDir))
    return startPart(port, async () => {
      const metrics = createGatewayMetrics()
      const connected = connectCores({ urls: config.CORE_URLS })
      const gateway = createGateway({
        config,
        cores: connected.cores,
        logger,
        metrics,
        staticFolders: { console: join(root, 'console/dist'), widget: join(root, 'widget/dist') },
      })
      await gateway.listen({ port, host: '127.0.0.1' })
      return async () => {
        await gateway.close()
        connected.stop()
      }
    })
  }
}

/** Starts a stack before the tests of the file. Only hooks and tests may read it. */
export function useLocalStack({ database = testDatabase(), ...options }: Partial<LocalStackOptions> = {}): LocalStack {
  let stack: LocalStack
  beforeAll(async () => {
    stack = await startLocalStack({ database, ...options })
  })
  return latest(() => stack)
}

/** @param run starts the part. Returns the function that stops it. */
async function startPart(port: number, run: () => Promise<() => Promise<void>>): Promise<LocalPart> {
  let stopRunning: (() => Promise<void>) | undefined = await run()
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      const stopping = stopRunning
      stopRunning = undefined
      await stopping?.()
    },
    async start() {
      stopRunning = await run()
    },
  }
}
