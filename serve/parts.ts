import closeWithGrace from 'close-with-grace'
import type { CoreConfig } from '../core/config.ts'
import type { RunningCore } from '../core/context.ts'
import { inMemoryTransport, serveCore } from '../core/server.ts'
import { createCorePool } from '../core-client/core-pool.ts'
import { createCoreTransport } from '../core-client/core-transport.ts'
import type { DeliveryConfig } from '../delivery/config.ts'
import { createDeliveryMetrics } from '../delivery/metrics.ts'
import { createDelivery } from '../delivery/worker.ts'
import { createGateway } from '../gateway/app.ts'
import type { Config } from '../gateway/config.ts'
import { createGatewayMetrics } from '../gateway/metrics.ts'
import { builtFolders } from '../gateway/routes/static-files.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { createProcessMetrics } from '../platform/observability/process-metrics.ts'
import { listenOn } from '../platform/settings/start-faults.ts'

/** What closes the started parts, in the order of their start. */
export type Closers = (() => Promise<unknown>)[]

/** Limit of the shutdown. Longer than the worker's grace time, final reports and the end of the servers together. */
const stopWithinMs = 25_000

export function closeAtEnd(closers: Closers, before: () => void = () => {}) {
  closeWithGrace({ delay: stopWithinMs, logger: undefined }, async ({ err }) => {
    if (err) console.error(err)
    before()
    await closeAll(closers)
  })
}

/** Closes everything in reverse order, even if one close fails. */
export async function closeAll(closers: Closers) {
  for (const close of closers.reverse()) await close().catch((error: Error) => console.error(error.message))
}

/** Serves a started core, and starts a gateway and a worker that call it in memory. Adds to `closers`. */
export async function startParts(
  core: RunningCore,
  configs: { core: CoreConfig; gateway: Config; delivery: DeliveryConfig },
  closers: Closers,
) {
  const { CORE_HOST, CORE_PORT, METRICS_HOST, METRICS_PORT } = configs.core
  const coreServer = await listenOn('CORE', CORE_HOST, CORE_PORT, (host) => serveCore(core, { host, port: CORE_PORT }))
  closers.push(coreServer.close)
  // The gateway uses this port only for the console's calls. Other calls of gateway and worker are in memory.
  const coreUrl = coreAddress(CORE_HOST, coreServer.port)
  const { request } = createCoreTransport(coreUrl)
  const cores = createCorePool({ cores: [{ url: coreUrl, transport: inMemoryTransport(core), request }] })
  const deliveryMetrics = createDeliveryMetrics()
  const delivery = createDelivery({
    config: configs.delivery,
    cores,
    logger: createLogger('delivery', configs.delivery.LOG_LEVEL),
    metrics: deliveryMetrics,
  })
  closers.push(delivery.stop)
  delivery.start()
  const gatewayMetrics = createGatewayMetrics()
  const gateway = createGateway({
    config: configs.gateway,
    cores,
    logger: createLogger('gateway', configs.gateway.LOG_LEVEL),
    metrics: gatewayMetrics,
    staticFolders: builtFolders,
  })
  closers.push(() => gateway.close())
  const { GATEWAY_PORT: port, GATEWAY_HOST } = configs.gateway
  await listenOn('GATEWAY', GATEWAY_HOST, port, (host) => gateway.listen({ port, host }))

  const ofProcess = createProcessMetrics(
    ['gateway', 'core', 'delivery'].map((part) => ({ part })),
    createLogger('serve', configs.gateway.LOG_LEVEL),
  )
  const metricsServer = await serveMetrics({ METRICS_HOST, METRICS_PORT }, [
    ofProcess.registry,
    gatewayMetrics.registry,
    core.metrics.registry,
    deliveryMetrics.registry,
  ])
  closers.push(async () => metricsServer?.close())
}

export function coreAddress(host: string, port: number): string {
  const everywhere = ['', '::', '0.0.0.0'].includes(host)
  return `http://${everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`
}
