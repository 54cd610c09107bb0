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
 * Connections that may wait to be accepted. After another gateway stops, thousands reconnect at
 * once. Node's default is 511: the system drops each one beyond it, and the client retries after 1
 * s. The system may allow fewer (`net.core.somaxconn`).
 */
const BACKLOG = 4_096

/**
 * Time for a core that starts at the same time to create the secrets in the data folder.
 * A core waits up to a minute for its database.
 */
const SECRETS_TIMEOUT_MS = 75_000
const SECRETS_POLL_MS = 100

async function readSettings(): Promise<Config> {
  for (let waited = 0; ; waited += SECRETS_POLL_MS) {
    try {
      return loadConfig()
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      if (!(error instanceof MissingTokenError) || waited >= SECRETS_TIMEOUT_MS) {
        console.error(error.message)
        process.exit(1)
      }
      if (waited === 0) console.error('no service token yet; waiting for a core to create secrets in DATA_DIR')
      await delay(SECRETS_POLL_MS)
    }
  }
}

const config = await readSettings()
const logger = createLogger('gateway', config.LOG_LEVEL)
const metrics = createGatewayMetrics()
const stopTracing = await startTracing('service-gateway')
const { cores, stop: stopCores } = connectCores({ urls: config.CORE_URLS, tls: coreTlsFiles(config) })
const staticFolders = {
  console: join(import.meta.dirname, '../console/dist'),
  widget: join(import.meta.dirname, '../widget/dist'),
}
const gateway = createGateway({ config, cores, logger, staticFolders, metrics })
const metricsServer = await serveMetrics(config, [metrics.registry])

closeWithGrace({ delay: GRACE_MS, logger }, async ({ err }) => {
  if (err) logger.fatal({ err }, 'stopping after an error')
  await gateway.close()
  stopCores()
  await metricsServer?.close()
  await stopTracing()
})

try {
  await gateway.listen({ port: config.GATEWAY_PORT, host: config.GATEWAY_HOST, backlog: BACKLOG })
} catch (error) {
  if (config.GATEWAY_HOST !== '::' || (error as NodeJS.ErrnoException).code !== 'EAFNOSUPPORT') throw error
  // The machine has no IPv6.
  await gateway.listen({ port: config.GATEWAY_PORT, host: '0.0.0.0', backlog: BACKLOG })
}
