import closeWithGrace from 'close-with-grace'
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
import { createGateway } from './app.ts'
import { loadConfig } from './config.ts'
import { createGatewayMetrics } from './metrics.ts'
import { builtFolders } from './routes/static-files.ts'

const GRACE_MS = 10_000

/**
 * Connections that wait to be accepted. After another gateway stops, thousands of clients reconnect at
 * once; with Node's default of 511, the system drops them, and they retry after 1 s. `net.core.somaxconn`
 * may lower it.
 */
const BACKLOG = 4_096

async function main() {
  const config = await readAtStart('gateway', loadConfig)
  const logger = createLogger('gateway', config.LOG_LEVEL)
  warnOfMisspeltNames(logger)
  const metrics = createGatewayMetrics()
  const stopTracing = await startTracing('service-gateway')
  const tls = coreTlsFiles(config, logger)
  const { cores, stop: stopCores } = connectCores({ urls: config.CORE_URLS, tls, logger })
  const gateway = createGateway({ config, cores, logger, staticFolders: builtFolders, metrics })
  const tokenExpiresAt = readServiceToken(config.CORE_TOKEN)?.expiresAt
  const ofProcess = createProcessMetrics([{ part: 'gateway', tokenExpiresAt, tls }], logger)
  const metricsServer = await serveMetrics(config, [ofProcess.registry, metrics.registry])

  closeWithGrace({ delay: GRACE_MS, logger }, async ({ err }) => {
    if (err) logger.fatal({ err }, 'gateway stops after an error')
    await gateway.close()
    stopCores()
    await metricsServer?.close()
    await stopTracing()
  })

  const { GATEWAY_HOST, GATEWAY_PORT: port } = config
  await listenOn('GATEWAY', GATEWAY_HOST, port, (host) => gateway.listen({ port, host, backlog: BACKLOG }))
  logger.info({ version: serviceVersion() }, 'gateway started')
}

main().catch((error: unknown) => failStart('gateway', error))
