import closeWithGrace from 'close-with-grace'
import { createLogger } from '../observability/logger.ts'
import { serveMetrics } from '../observability/metrics-server.ts'
import { startTracing } from '../observability/tracing.ts'
import { readCoreConfig } from './config.ts'
import { startCore } from './core.ts'
import { seedDemo } from './demo-seed.ts'
import { serveCore } from './server.ts'

async function main() {
  const config = readCoreConfig()
  const logger = createLogger('core', config.LOG_LEVEL)
  const stopTracing = await startTracing('service-core')
  const core = await startCore(config, logger)
  const metricsServer = await serveMetrics(config, [core.context.metrics.registry])
  // Whoever sees it ready finds the demo there.
  if (config.NODE_ENV !== 'production') await seedDemo(core, config)
  const server = await serveCore(core.context, { host: config.CORE_HOST, port: config.CORE_PORT })
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

main().catch((error: Error) => {
  console.error(`core: ${error.message}`)
  process.exit(1)
})
