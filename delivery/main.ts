import type { Server } from 'node:http'
import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { connectCores } from '../core-client/connect-cores.ts'
import { coreTlsFiles } from '../core-client/core-tls.ts'
import { readServiceToken } from '../core-client/service-token.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { createProcessMetrics, serviceVersion } from '../platform/observability/process-metrics.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { warnOfMisspeltNames } from '../platform/settings/config.ts'
import { readAtStart } from '../platform/settings/process-settings.ts'
import { failStart, listenOn } from '../platform/settings/start-faults.ts'
import { loadDeliveryConfig } from './config.ts'
import { serveHealth } from './health.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { createDelivery } from './worker.ts'

const stopSignals: ('SIGINT' | 'SIGTERM')[] = ['SIGINT', 'SIGTERM']

/** Time for the last claims and reports, in addition to the grace time. */
const lastCallsMs = 4_000

async function main() {
  const config = await readAtStart('delivery', loadDeliveryConfig)
  const logger = createLogger('delivery', config.LOG_LEVEL)
  warnOfMisspeltNames(logger)
  const metrics = createDeliveryMetrics()
  const stopTracing = await startTracing('service-delivery')
  const tls = coreTlsFiles(config, logger)
  const { cores, stop: stopCores } = connectCores({ urls: config.CORE_URLS, tls, logger })
  const worker = createDelivery({ config, cores, logger, metrics })
  const tokenExpiresAt = readServiceToken(config.DELIVERY_TOKEN)?.expiresAt
  const ofProcess = createProcessMetrics([{ part: 'delivery', tokenExpiresAt, tls }], logger)
  const metricsServer = await serveMetrics(config, [ofProcess.registry, metrics.registry])
  let health: Server | undefined

  const stopTimeoutMs = config.DELIVERY_GRACE_MS + lastCallsMs
  const { close } = closeWithGrace({ delay: stopTimeoutMs, skip: stopSignals, logger: undefined }, async ({ err }) => {
    if (err) logger.fatal({ type: err.name, stack: err.stack }, 'delivery worker stops after an error')
    await worker.stop()
    stopCores()
    health?.close()
    await metricsServer?.close()
    await stopTracing()
    logger.info('delivery worker stopped')
  })

  onStopSignal(close, logger)

  const { DELIVERY_HOST, DELIVERY_PORT: port } = config
  if (port > 0) {
    health = await listenOn('DELIVERY', DELIVERY_HOST, port, (host) =>
      serveHealth({ host, port, isReady: worker.isReady }),
    )
  }
  worker.start()
  logger.info({ version: serviceVersion() }, 'delivery worker started')
}

/**
 * Stops at the first signal. Later ones are ignored: they must not abort running attempts, which would be
 * sent again, and `npm` and terminals may forward one signal twice. SIGKILL ends the process at once.
 */
function onStopSignal(stop: () => unknown, logger: Logger) {
  let stopping = false
  for (const signal of stopSignals) {
    process.on(signal, () => {
      if (stopping) {
        logger.warn({ signal }, 'signal ignored; delivery worker is already stopping')
        return
      }
      stopping = true
      logger.info(
        { signal },
        'delivery worker stops; finishing running attempts and returning other deliveries to the queue',
      )
      stop()
    })
  }
}

main().catch((error: unknown) => failStart('delivery', error))
