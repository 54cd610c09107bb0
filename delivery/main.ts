import type { Server } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import { connectCores } from '../core-client/connect-cores.ts'
import { coreTlsFiles } from '../core-client/core-tls.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { createDelivery } from './app.ts'
import { type DeliveryConfig, loadDeliveryConfig, MissingTokenError, SettingError } from './config.ts'
import { serveHealth } from './health.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { onStopSignal, stopSignals } from './stop-signals.ts'

/**
 * Time for a core that starts at the same time to create the token in the data folder.
 * A core waits up to a minute for its database.
 */
const tokenTimeoutMs = 75_000
const tokenPollMs = 100
/** Time for the last claims and reports, in addition to the grace time. */
const lastCallsMs = 4_000

async function readSettings(): Promise<DeliveryConfig> {
  for (let waited = 0; ; waited += tokenPollMs) {
    try {
      return loadDeliveryConfig()
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      if (!(error instanceof MissingTokenError) || waited >= tokenTimeoutMs) {
        console.error(error.message)
        process.exit(1)
      }
      if (waited === 0) console.error('waiting for a core to make the token in DATA_DIR')
      await delay(tokenPollMs)
    }
  }
}

const config = await readSettings()
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
    // The machine has no IPv6.
    if (host !== '::' || error.code !== 'EAFNOSUPPORT') throw error
    return serveHealth({ host: '0.0.0.0', port, isReady: worker.isReady })
  })
}
logger.info('delivery worker started')
