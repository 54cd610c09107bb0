import closeWithGrace from 'close-with-grace'
import { readCoreConfig } from './config.ts'
import { startCore } from './core.ts'
import { seedDemo } from './demo-seed.ts'
import { createLogger } from './logger.ts'
import { serveCore } from './server.ts'

async function main() {
  const config = readCoreConfig()
  const logger = createLogger('core', config.LOG_LEVEL)
  const core = await startCore(config, logger)
  // Whoever sees it ready finds the demo there.
  if (config.NODE_ENV !== 'production') await seedDemo(core, config)
  const server = await serveCore(core.context, { host: config.CORE_HOST, port: config.CORE_PORT })
  logger.info({ port: server.port }, 'core listens')

  closeWithGrace({ delay: 10_000, logger: undefined }, async ({ err }) => {
    if (err) logger.fatal({ type: err.name, stack: err.stack }, 'core stops after a fault')
    await server.close()
    await core.stop()
    logger.info('core stopped')
  })
}

main().catch((error: Error) => {
  console.error(`core: ${error.message}`)
  process.exit(1)
})
