import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { inject } from 'vitest'
import { readCoreConfig } from '../../core/config.ts'
import { startCore } from '../../core/core.ts'
import { serveCore } from '../../core/server.ts'
import { connectCores } from '../../core-client/connect-cores.ts'
import { readDevConfig } from '../../dev/config.ts'
import { dataFolderSecrets, withDataFolderSecrets } from '../../dev/data-folder.ts'
import { seedDemo } from '../../dev/demo-seed.ts'
import { nudgeOfDatabase } from '../../dev/engine/nudge.ts'
import { createGateway } from '../../gateway/app.ts'
import { readConfig } from '../../gateway/config.ts'
import { createGatewayMetrics } from '../../gateway/metrics.ts'
import { atFileEnd } from './clean-up.ts'
import { freePort } from './free-port.ts'
import { operatorOf } from './operator.ts'
import type { Stack } from './stack.ts'
import type { TestDatabase } from './test-database.ts'
import { startVisitor } from './visitor.ts'

const root = join(import.meta.dirname, '../..')

/** A stack with one gateway and one core, which are not processes of their own. */
export interface LocalStack extends Pick<Stack, 'demo' | 'dataDir' | 'operator' | 'newVisitor'> {
  cores: { url: string }[]
  gateways: { url: string }[]
}

/**
 * Starts a gateway and a core in this process. They use HTTP between each other and stop at the end
 * of the test file. For tests that neither kill nor restart a process: `startStack` starts
 * processes, which takes seconds of processor time.
 */
export async function startLocalStack({
  database,
  env = {},
}: {
  database: TestDatabase
  env?: Record<string, string>
}): Promise<LocalStack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'service-local-'))
  // Logs everything, because the output is checked for secrets at the end of the test run.
  const output = pino.destination({ dest: join(inject('processOutput'), `local-${process.pid}.log`), sync: false })
  const logger = pino({ level: 'trace' }, output)
  const settings = { MONGODB_URI: database.uri, MONGODB_DATABASE: database.name, ...env }
  const dev = readDevConfig({ DATA_DIR: dataDir })
  const coreConfig = await withDataFolderSecrets(readCoreConfig({ CORE_PORT: `${await freePort()}`, ...settings }), dev)
  const nudge = nudgeOfDatabase(database.uri, database.name)
  const core = await startCore(coreConfig, { logger, ...(nudge && { nudge }) })
  const demo = await seedDemo(core, coreConfig, dataDir)
  const server = await serveCore(core, { host: '', port: coreConfig.CORE_PORT })
  const coreUrl = `http://127.0.0.1:${server.port}`

  const gatewayConfig = readConfig({ CORE_URLS: coreUrl, ...env }, await dataFolderSecrets(dataDir))
  const metrics = createGatewayMetrics()
  const { cores, stop: stopCores } = connectCores({ urls: gatewayConfig.CORE_URLS, linkMetrics: metrics })
  const gateway = createGateway({
    config: gatewayConfig,
    cores,
    logger,
    metrics,
    staticFolders: { console: join(root, 'console/dist'), widget: join(root, 'widget/dist') },
  })
  const url = await gateway.listen({ port: 0, host: '127.0.0.1' })
  atFileEnd(async () => {
    await gateway.close()
    stopCores()
    await server.close()
    await core.stop()
    nudge?.close()
    output.end()
    await rm(dataDir, { recursive: true, force: true })
  })

  return {
    demo,
    dataDir,
    cores: [{ url: coreUrl }],
    gateways: [{ url }],
    operator: () => operatorOf(coreUrl, demo.serviceToken),
    newVisitor: (options) => startVisitor({ gatewayUrl: url, origin: demo.origin, siteKey: demo.siteKey, ...options }),
  }
}
