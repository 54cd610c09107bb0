import closeWithGrace from 'close-with-grace'
import { createLogger } from '../observability/logger.ts'
import { serveMetrics } from '../observability/metrics-server.ts'
import { startTracing } from '../observability/tracing.ts'
import { createTlsFiles } from '../tls/tls-files.ts'
import { type CoreConfig, readCoreConfig } from './config.ts'
import { startCore } from './core.ts'
import type { ListenerTls } from './listener.ts'
import { serveCore } from './server.ts'
import { seedDemo } from './workspaces/demo-seed.ts'

async function main() {
  const config = readCoreConfig()
  const logger = createLogger('core', config.LOG_LEVEL)
  const stopTracing = await startTracing('service-core')
  const core = await startCore(config, logger)
  const metricsServer = await serveMetrics(config, [core.context.metrics.registry])
  // Whoever sees it ready finds the demo there.
  if (config.NODE_ENV !== 'production') await seedDemo(core, config)
  const tls = tlsOf(config)
  const server = await serveCore(core.context, { host: config.CORE_HOST, port: config.CORE_PORT, ...(tls && { tls }) })
  logger.info({ port: server.port }, 'core listens')

  closeWithGrace({ delay: 10_000, logger: undefined }, async ({ err }) => {
    if (err) logger.fatal({ type: err.name, stack: err.stack }, 'core stops after a fault')
    await server.close()
    await core.stop()
    await metricsServer?.close()
    await stopTracing()
    logger.info('core stopped')
  })
}

function tlsOf({ CORE_TLS_CERT: cert, CORE_TLS_KEY: key, CORE_TLS_CA: ca }: CoreConfig): ListenerTls | undefined {
  if (cert === '') return undefined
  return { files: createTlsFiles({ cert, key, ...(ca && { ca }) }), asksClients: ca !== '' }
}

main().catch((error: Error) => {
  console.error(`core: ${error.message}`)
  process.exit(1)
})
