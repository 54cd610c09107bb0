import { join } from 'node:path'
import closeWithGrace from 'close-with-grace'
import { connectCores } from '../core-client/connect-cores.ts'
import { coreTlsFiles } from '../core-client/core-tls.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { readAtStart } from '../platform/settings/process-settings.ts'
import { createGateway } from './app.ts'
import { loadConfig } from './config.ts'
import { createGatewayMetrics } from './metrics.ts'

const GRACE_MS = 10_000

/**
 * Maximum number of connections that wait to be accepted. After another gateway stops, thousands
 * reconnect at once. With Node's default of 511, the system drops further connections, and their
 * clients retry after 1 s. The system may allow fewer than this number (`net.core.somaxconn`).
 */
const BACKLOG = 4_096

const config = await readAtStart(loadConfig)
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
  if (err) logger.fatal({ err }, 'gateway stops after an error')
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
