import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { createProcessMetrics, serviceVersion } from '../platform/observability/process-metrics.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { warnOfMisspeltNames } from '../platform/settings/config.ts'
import { failStart, listenOn } from '../platform/settings/start-faults.ts'
import { createTlsFiles, type WatchedTlsFiles } from '../platform/tls/tls-files.ts'
import { type CoreConfig, readCoreConfig } from './config.ts'
import type { RunningCore } from './context.ts'
import { listenForCore } from './server.ts'
import type { CoreStartOptions } from './start-core.ts'
import type { ListenerTls } from './transport/listener.ts'

type StartCore = (config: CoreConfig, options: CoreStartOptions) => Promise<RunningCore>

/** Runs a core process until a stop signal. The process is ready when `startCore` resolves. */
export function runCore(startCore: StartCore) {
  run(startCore).catch((error: unknown) => failStart('core', error))
}

async function run(startCore: StartCore) {
  const config = readCoreConfig()
  const logger = createLogger('core', config.LOG_LEVEL)
  const stopTracing = await startTracing('service-core')
  warnOfMisspeltNames(logger)
  const tls = tlsOf(config, logger)
  // Listens before the start, so that probes get an answer while the core waits for the database.
  const { CORE_HOST, CORE_PORT: port } = config
  const server = await listenOn('CORE', CORE_HOST, port, (host) => listenForCore({ host, port, tls }))
  const stopping = new AbortController()
  const starting = start(startCore, config, { logger, signal: stopping.signal }, tls)
  starting.then(
    ({ core }) => {
      server.serve(core)
      logger.info({ port: server.port, version: serviceVersion() }, 'core is listening')
    },
    (error: unknown) => {
      if (!stopping.signal.aborted) failStart('core', error)
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

type WatchedTls = ListenerTls & { files: WatchedTlsFiles }

async function start(startCore: StartCore, config: CoreConfig, options: CoreStartOptions, tls?: WatchedTls) {
  const ofProcess = createProcessMetrics([{ part: 'core', tls: tls?.files }], options.logger)
  const core = await startCore(config, options)
  try {
    return { core, metricsServer: await serveMetrics(config, [ofProcess.registry, core.metrics.registry]) }
  } catch (error) {
    await core.stop()
    throw error
  }
}

function tlsOf(config: CoreConfig, logger: Logger) {
  const { CORE_TLS_CERT: cert, CORE_TLS_KEY: key, CORE_TLS_CA: ca } = config
  if (cert === '') return undefined
  const names = { cert: 'CORE_TLS_CERT', key: 'CORE_TLS_KEY', ca: 'CORE_TLS_CA' }
  return { files: createTlsFiles({ cert, key, ca: ca || undefined }, { names, logger }), asksClients: ca !== '' }
}
