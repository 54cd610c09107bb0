import type { Server } from 'node:http'
import closeWithGrace from 'close-with-grace'
import { connectCores } from '../core-client/connect-cores.ts'
import { coreTlsFiles } from '../core-client/core-tls.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { readAtStart } from '../platform/settings/process-settings.ts'
import { createDelivery } from './app.ts'
import { loadDeliveryConfig } from './config.ts'
import { serveHealth } from './health.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { onStopSignal, stopSignals } from './stop-signals.ts'

/** Time for the last claims and reports of a stopping worker, in addition to its grace time. */
const lastCallsMs = 4_000

const config = await readAtStart(loadDeliveryConfig)
const logger = createLogger('delivery', config.LOG_LEVEL)
const metrics = createDeliveryMetrics()
const stopTracing = await startTracing('service-delivery')
const { cores, stop: stopCores } = connectCores({ urls: config.CORE_URLS, tls: coreTlsFiles(config) })
const worker = createDelivery({ config, cores, logger, metrics })
const metricsServer = await serveMetrics(config, [metrics.registry])
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

onStopSignal({ stop: close, logger })

worker.start()
if (config.DELIVERY_PORT > 0) {
  const { DELIVERY_HOST: host, DELIVERY_PORT: port } = config
  health = await serveHealth({ host, port, isReady: worker.isReady }).catch((error: NodeJS.ErrnoException) => {
    // If the machine has no IPv6, the server listens on IPv4 only.
    if (host !== '::' || error.code !== 'EAFNOSUPPORT') throw error
    return serveHealth({ host: '0.0.0.0', port, isReady: worker.isReady })
  })
}
logger.info('delivery worker started')
