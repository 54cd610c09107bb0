import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import { connectCores } from '../core-client/connect-cores.ts'
import { coreTlsFiles } from '../core-client/core-tls.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { createGateway } from './app.ts'
import { type Config, loadConfig, MissingTokenError, SettingError } from './config.ts'
import { createGatewayMetrics } from './metrics.ts'

const GRACE_MS = 10_000

/**
 * Connections that may wait to be taken. When a gateway before this one has gone, thousands come in one moment; beyond Node's
 * own 511 each is dropped, and tries again after a whole second. The system may allow fewer (`net.core.somaxconn`).
 */
const BACKLOG = 4_096

/** How long a core that starts at the same time has to make the data folder's secrets: it waits a minute for its database. */
const SECRETS_WITHIN_MS = 75_000
const LOOK_EVERY_MS = 100

async function readSettings(): Promise<Config> {
  for (let waited = 0; ; waited += LOOK_EVERY_MS) {
    try {
      return loadConfig()
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      if (!(error instanceof MissingTokenError) || waited >= SECRETS_WITHIN_MS) {
        console.error(error.message)
        process.exit(1)
      }
      if (waited === 0) console.error('waiting for a core to make the secrets of DATA_DIR')
      await delay(LOOK_EVERY_MS)
    }
  }
}

const config = await readSettings()
const logger = createLogger('gateway', config.LOG_LEVEL)
const metrics = createGatewayMetrics()
const stopTracing = await startTracing('service-gateway')
const { cores, stop: leaveCores } = connectCores({ urls: config.CORE_URLS, tls: coreTlsFiles(config) })
const staticFolders = {
  console: join(import.meta.dirname, '../console/dist'),
  widget: join(import.meta.dirname, '../widget/dist'),
}
const gateway = createGateway({ config, cores, logger, staticFolders, metrics })
const metricsServer = await serveMetrics(config, [metrics.registry])

closeWithGrace({ delay: GRACE_MS, logger }, async ({ err }) => {
  if (err) logger.fatal({ err }, 'stopping after an error')
  await gateway.close()
  leaveCores()
  await metricsServer?.close()
  await stopTracing()
})

try {
  await gateway.listen({ port: config.GATEWAY_PORT, host: config.GATEWAY_HOST, backlog: BACKLOG })
} catch (error) {
  if (config.GATEWAY_HOST !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error
  // A machine without IPv6.
  await gateway.listen({ port: config.GATEWAY_PORT, host: '0.0.0.0', backlog: BACKLOG })
}
