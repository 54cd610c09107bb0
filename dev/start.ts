// `npm start`: all parts in one process, with a demo shop.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import closeWithGrace from 'close-with-grace'
import { isConsoleStale } from '../console/build.ts'
import { readCoreConfig } from '../core/config.ts'
import { startCore } from '../core/core.ts'
import { inMemoryTransport, serveCore } from '../core/server.ts'
import { demoIds, seedDemo } from '../core/workspaces/demo-seed.ts'
import { createCorePool } from '../core-client/core-pool.ts'
import { createDelivery } from '../delivery/app.ts'
import { loadDeliveryConfig } from '../delivery/config.ts'
import { createDeliveryMetrics } from '../delivery/metrics.ts'
import { createGateway } from '../gateway/app.ts'
import { loadConfig } from '../gateway/config.ts'
import { createGatewayMetrics } from '../gateway/metrics.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { serveMetrics } from '../platform/observability/metrics-server.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { isWidgetStale, widgetDist } from '../widget/build.ts'
import { readDemoConfig } from '../widget/demo/config.ts'
import { createDemoSite } from '../widget/demo/server.ts'

const closers: (() => Promise<unknown>)[] = []

/** Closes in reverse order, even if one fails. */
async function stopAll() {
  for (const close of closers.reverse()) await close().catch((error: Error) => console.error(error.message))
}

async function startAll() {
  const coreConfig = readCoreConfig()
  const { DEMO_PORT } = readDemoConfig()
  const logger = createLogger('core', coreConfig.LOG_LEVEL)

  closers.push(await startTracing('service'))
  const built = Promise.all([
    buildInParallel('widget/build.ts', isWidgetStale()),
    buildInParallel('console/build.ts', isConsoleStale()),
  ])
  // A build error is reported by the await below.
  built.catch(() => {})
  const core = await startCore(coreConfig, logger)
  closers.push(core.stop)
  const gatewayConfig = loadConfig()
  const addresses = {
    gatewayUrl: `http://localhost:${gatewayConfig.GATEWAY_PORT}`,
    coreUrl: `http://localhost:${coreConfig.CORE_PORT}`,
    origin: `http://localhost:${DEMO_PORT}`,
  }
  // Seeded before any part is ready, so that the demo is always complete.
  const { identity, workspaceSession } = await seedDemo(core, coreConfig, addresses)

  const coreServer = await serveCore(core.context, { host: coreConfig.CORE_HOST, port: coreConfig.CORE_PORT }).catch(
    portTaken('CORE_PORT'),
  )
  closers.push(coreServer.close)
  // The console's calls use HTTP to this port; the other parts call the core in memory.
  const coreUrl = coreAddress(coreConfig.CORE_HOST, coreServer.port)
  const cores = createCorePool({ cores: [{ url: coreUrl, transport: inMemoryTransport(core.context) }] })
  const deliveryConfig = loadDeliveryConfig()
  const deliveryMetrics = createDeliveryMetrics()
  const delivery = createDelivery({
    config: deliveryConfig,
    cores,
    logger: createLogger('delivery', deliveryConfig.LOG_LEVEL),
    metrics: deliveryMetrics,
  })
  closers.push(delivery.stop)
  delivery.start()
  const gatewayMetrics = createGatewayMetrics()
  const gateway = createGateway({
    config: gatewayConfig,
    cores,
    logger: createLogger('gateway', gatewayConfig.LOG_LEVEL),
    metrics: gatewayMetrics,
    staticFolders: { console: join(import.meta.dirname, '../console/dist'), widget: widgetDist },
  })
  closers.push(() => gateway.close())
  const { GATEWAY_PORT: port, GATEWAY_HOST: host } = gatewayConfig
  await gateway.listen({ port, host }).catch(portTaken('GATEWAY_PORT'))

  const parts = [gatewayMetrics, core.context.metrics, deliveryMetrics]
  const metricsServer = await serveMetrics(
    coreConfig,
    parts.map(({ registry }) => registry),
  ).catch(portTaken('METRICS_PORT'))
  closers.push(async () => metricsServer?.close())
  await built
  const agentCommand = replyCommand(addresses.coreUrl, coreConfig.DATA_DIR)
  const { gatewayUrl } = addresses
  const demo = await createDemoSite({ gatewayUrl, siteKey: demoIds.siteKey, identity, agentCommand })
  closers.push(() => closeServer(demo))
  await listen(demo, DEMO_PORT).catch(portTaken('DEMO_PORT'))
  const signInCommand = workspaceSession ? sessionCommand(coreConfig.DATA_DIR) : undefined
  printGuide({ ...addresses, dataDir: coreConfig.DATA_DIR, agentCommand, signInCommand })
}

/** Builds in a separate process, so that the parts start in parallel. */
async function buildInParallel(script: string, isStale: Promise<boolean>): Promise<void> {
  if (await isStale) await promisify(execFile)(process.execPath, [join(import.meta.dirname, '..', script)])
}

/** A command that replies to the latest conversation. Reads the token from a file to keep it out of pages and shell history. */
function replyCommand(coreUrl: string, dataDir: string): string {
  const service = `${coreUrl}/service.messaging.v1.MessagingService`
  const json = "-H 'Content-Type: application/json'"
  return `curl -K ${dataDir}/agent.curl ${service}/SendAgentMessage ${json} -d '{"conversationId":"'$(curl -sK ${dataDir}/agent.curl ${service}/ListConversations ${json} -d '{"limit":1}' | grep -o 'cnv_[a-z0-9]*' | head -n 1)'","clientOperationId":"'$(date +%s)'","body":"Hello, how can I help?","agent":{"displayName":"Ada"}}'`
}

/** A command that prints the demo operator's workspace session for the console's sign-in. */
const sessionCommand = (dataDir: string) => `grep -o 'eyJ[^"]*' ${dataDir}/workspace.curl`

function printGuide({
  gatewayUrl,
  coreUrl,
  origin,
  dataDir,
  agentCommand,
  signInCommand,
}: {
  gatewayUrl: string
  coreUrl: string
  origin: string
  dataDir: string
  agentCommand: string
  /** Undefined if the demo cannot sign workspace sessions. */
  signInCommand: string | undefined
}) {
  const signIn = signInCommand
    ? `Sign in to the console with the workspace session that this prints:

  ${signInCommand}`
    : 'Sign in to the console with a workspace session of the configured issuer.'
  console.log(`
Service is ready.

  Demo shop   ${origin}    write to it as a visitor
  Gateway     ${gatewayUrl}    the public API
  Console     ${gatewayUrl}/console/    read and answer as an operator
  Core        ${coreUrl}    the internal services
  Data        ${dataDir}    the database, the secrets and demo.json

${signIn}

Or answer the latest conversation from here:

  ${agentCommand}

Ctrl-C stops everything.
`)
}

/** The URL at which this process reaches its own core. */
function coreAddress(host: string, port: number): string {
  const everywhere = ['', '::', '0.0.0.0'].includes(host)
  return `http://${everywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`
}

async function listen(server: Server, port: number) {
  server.listen(port)
  await once(server, 'listening')
}

function closeServer(server: Server) {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(resolve))
}

function portTaken(setting: string) {
  return (error: NodeJS.ErrnoException): never => {
    if (error.code !== 'EADDRINUSE') throw error
    throw new Error(`${setting}: the port is in use; set it to a free port`)
  }
}

/** Longer than the delivery worker's grace time, its final reports and the other parts' stop time together. */
const stopWithinMs = 25_000

closeWithGrace({ delay: stopWithinMs, logger: undefined }, async ({ err }) => {
  if (err) console.error(err)
  await stopAll()
})

try {
  await startAll()
} catch (error) {
  console.error((error as Error).message)
  await stopAll()
  process.exit(1)
}
