import closeWithGrace from 'close-with-grace'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { createTlsFiles } from '../platform/tls/tls-files.ts'
import { type CoreConfig, readCoreConfig } from './config.ts'
import type { CoreContext } from './context.ts'
import type { CoreStartOptions } from './core.ts'
import { listenForCore } from './server.ts'
import type { ListenerTls } from './transport/listener.ts'

type StartCore = (config: CoreConfig, options: CoreStartOptions) => Promise<CoreContext>

/**
 * Runs a core process until it receives a stop signal. The process is ready when `startCore`
 * resolves. Exits with an error message if the start fails.
 */
export function runCore(startCore: StartCore): void {
  run(startCore).catch(fail)
}

async function run(startCore: StartCore) {
  const config = readCoreConfig()
  const logger = createLogger('core', config.LOG_LEVEL)
  const stopTracing = await startTracing('service-core')
  const tls = tlsOf(config)
  // Listens before the start, so that probes get an answer while the core waits for the database.
  const server = await listenForCore({ host: config.CORE_HOST, port: config.CORE_PORT, tls })
  const stopping = new AbortController()
  const starting = start(startCore, config, { logger, signal: stopping.signal })
  starting.then(
    ({ core }) => {
      server.serve(core)
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

async function start(startCore: StartCore, config: CoreConfig, options: CoreStartOptions) {
  const core = await startCore(config, options)
  try {
    return { core, metricsServer: await serveMetrics(config, [core.metrics.registry]) }
  } catch (error) {
    await core.stop()
    throw error
  }
}

function tlsOf({ CORE_TLS_CERT: cert, CORE_TLS_KEY: key, CORE_TLS_CA: ca }: CoreConfig): ListenerTls | undefined {
  if (cert === '') return undefined
  return { files: createTlsFiles({ cert, key, ca: ca || undefined }), asksClients: ca !== '' }
}

function fail({ message }: Error): never {
  console.error(`core: ${message}`)
  process.exit(1)
}
