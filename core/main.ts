import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { createTlsFiles } from '../platform/tls/tls-files.ts'
import { type CoreConfig, readCoreConfig } from './config.ts'
import { startCore } from './core.ts'
import { retryAtStart } from './database/start-retries.ts'
import type { ListenerTls } from './rpc/listener.ts'
import { listenForCore } from './server.ts'
import { seedDemo } from './workspaces/demo-seed.ts'

async function main() {
  const config = readCoreConfig()
  const logger = createLogger('core', config.LOG_LEVEL)
  const stopTracing = await startTracing('service-core')
  const tls = tlsOf(config)
  // Listens first, so that probes get an answer while the core waits for the database.
  const server = await listenForCore({ host: config.CORE_HOST, port: config.CORE_PORT, tls })
  const stopping = new AbortController()
  const starting = start(config, logger, stopping.signal)
  starting.then(
    ({ core }) => {
      server.serve(core.context)
      logger.info({ port: server.port }, 'core is listening')
    },
    (error: Error) => {
      if (!stopping.signal.aborted) fail(error)
    },
  )

  closeWithGrace({ delay: 10_000, logger: undefined }, async ({ err }) => {
    if (err) logger.fatal({ type: err.name, stack: err.stack }, 'core stops after an unhandled error')
    stopping.abort()
    await server.close()
    const started = await starting.catch(() => undefined)
    await started?.core.stop()
    await started?.metricsServer?.close()
    await stopTracing()
    logger.info('core stopped')
  })
}

/**
 * Starts everything behind the port. The demo data comes last, so that it exists once the core is
 * ready.
 */
async function start(config: CoreConfig, logger: Logger, signal: AbortSignal) {
  const core = await startCore(config, logger, signal)
  try {
    const metricsServer = await serveMetrics(config, [core.context.metrics.registry])
    if (config.NODE_ENV !== 'production') {
      await retryAtStart(() => seedDemo(core, config), { logger, signal, withinMs: config.MONGODB_START_TIMEOUT_MS })
    }
    return { core, metricsServer }
  } catch (error) {
    await core.stop()
    throw error
  }
}

function tlsOf({ CORE_TLS_CERT: cert, CORE_TLS_KEY: key, CORE_TLS_CA: ca }: CoreConfig): ListenerTls | undefined {
  if (cert === '') return undefined
  return { files: createTlsFiles({ cert, key, ...(ca && { ca }) }), asksClients: ca !== '' }
}

function fail({ message }: Error): never {
  console.error(`core: ${message}`)
  process.exit(1)
}

main().catch(fail)
