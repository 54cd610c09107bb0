import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { boundServer, closeServer } from '../http/bounded-server.ts'
import { listenOn } from '../settings/start-faults.ts'

/**
 * Serves the metrics and those of the process at `GET /metrics`. Returns undefined if the port is 0. Errors:
 * `SettingError` if it cannot listen there.
 */
export async function serveMetrics(
  { METRICS_HOST: host, METRICS_PORT: port }: { METRICS_HOST: string; METRICS_PORT: number },
  registries: Registry[],
) {
  if (port === 0) return undefined
  let registry: Registry | undefined
  /** Called at the first scrape, because measuring the event loop's lag wakes the process ten times a second. */
  function open() {
    const ofProcess = new Registry()
    // The default of 10 ms would wake an idle process a hundred times a second. The lag's values include this time.
    collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: 100 })
    return Registry.merge([ofProcess, ...registries])
  }
  const server = createServer(async (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') return response.writeHead(404).end()
    registry ??= open()
    const text = await registry.metrics().catch(() => undefined)
    if (text === undefined) return response.writeHead(500).end()
    response.writeHead(200, { 'content-type': registry.contentType }).end(text)
  })
  boundServer(server)
  await listenOn('METRICS', host, port, (address) => once(server.listen({ host: address, port }), 'listening'))
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server) }
}
