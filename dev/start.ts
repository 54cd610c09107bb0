// `npm start`: runs gateway, core, delivery worker and a demo shop in one process.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isConsoleStale } from '../console/build.ts'
import { readCoreConfig } from '../core/config.ts'
import type { RunningCore } from '../core/context.ts'
import { createOwnerLink } from '../core/operators/console-sessions.ts'
import { loadDeliveryConfig } from '../delivery/config.ts'
import { loadConfig } from '../gateway/config.ts'
import { boundServer, closeServer } from '../platform/http/bounded-server.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { warnOfMisspeltNames } from '../platform/settings/config.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { failStart, listenOn } from '../platform/settings/start-faults.ts'
import { dataFolderSecrets } from '../serve/data-folder.ts'
import { type Closers, closeAll, closeAtEnd, startParts } from '../serve/parts.ts'
import { isWidgetStale } from '../widget/build.ts'
import { createDemoSite } from '../widget/demo/server.ts'
import { readDevConfig } from './config.ts'
import { demoIds, seedDemo } from './demo-seed.ts'
import { startLocalCore } from './local-core.ts'

const closers: Closers = []

async function startAll() {
  const given = readCoreConfig()
  const dev = readDevConfig()
  const { DEMO_PORT } = dev
  if (dev.NODE_ENV === 'production')
    throw new SettingError(
      'npm start runs a demo, which has no place in production; run npm run serve (docs/one-server.md), or unset NODE_ENV',
    )
  const logger = createLogger('core', given.LOG_LEVEL)
  warnOfMisspeltNames(logger)

  closers.push(await startTracing('service'))
  const built = Promise.all([
    buildInParallel('widget/build.ts', isWidgetStale()),
    buildInParallel('console/build.ts', isConsoleStale()),
  ])
  // Prevents an unhandled rejection. The await below reports a build error.
  built.catch(() => {})
  await dataFolderSecrets(dev.DATA_DIR)
  const gatewayConfig = loadConfig()
  const gatewayUrl = `http://localhost:${gatewayConfig.GATEWAY_PORT}`
  // Links in mails need the address of the gateway.
  const PUBLIC_URL = given.PUBLIC_URL || (given.SMTP_URL && gatewayUrl)
  const { core, config: coreConfig } = await startLocalCore({ ...given, PUBLIC_URL }, dev, { logger })
  closers.push(core.stop)
  const addresses = {
    gatewayUrl,
    coreUrl: `http://localhost:${coreConfig.CORE_PORT}`,
    origin: `http://localhost:${DEMO_PORT}`,
  }
  // Stores the demo data before any server accepts requests, so that the demo is always complete.
  const { identity } = await seedDemo(core, coreConfig, dev.DATA_DIR, addresses)

  const configs = { core: coreConfig, gateway: gatewayConfig, delivery: loadDeliveryConfig() }
  await startParts(core, configs, closers)
  await built
  const agentCommand = replyCommand(addresses.coreUrl, dev.DATA_DIR)
  const demo = await createDemoSite({ gatewayUrl, siteKey: demoIds.siteKey, identity, agentCommand })
  boundServer(demo)
  closers.push(() => closeServer(demo))
  const listening = () => once(demo.listen(DEMO_PORT), 'listening')
  await listenOn('DEMO', '', DEMO_PORT, listening)
  printGuide({ ...addresses, dataDir: dev.DATA_DIR, agentCommand, signInLink: await newSignInLink(core, gatewayUrl) })
}

async function buildInParallel(script: string, isStale: Promise<boolean>) {
  if (await isStale) await promisify(execFile)(process.execPath, [join(import.meta.dirname, '..', script)])
}

/** Returns a command that replies. It reads the token from a file, so that no page and no shell history has it. */
function replyCommand(coreUrl: string, dataDir: string) {
  const service = `${coreUrl}/service.messaging.v1.MessagingService`
  const json = "-H 'Content-Type: application/json'"
  return `curl -K ${dataDir}/agent.curl ${service}/SendAgentMessage ${json} -d '{"conversationId":"'$(curl -sK ${dataDir}/agent.curl ${service}/ListConversations ${json} -d '{"limit":1}' | grep -o 'cnv_[a-z0-9]*' | head -n 1)'","clientOperationId":"'$(date +%s)'","body":"Hello, how can I help?","agent":{"displayName":"Ada"}}'`
}

async function newSignInLink(core: RunningCore, gatewayUrl: string) {
  const { secret } = await createOwnerLink(core, demoIds.workspaceId, 'operator_demo')
  return `${gatewayUrl}/console/#sign-in=${secret}`
}

function printGuide(
  shown: Record<'gatewayUrl' | 'coreUrl' | 'origin' | 'dataDir' | 'agentCommand' | 'signInLink', string>,
) {
  const { gatewayUrl, coreUrl, origin, dataDir, agentCommand, signInLink } = shown
  console.log(`
Service is ready.

  Demo shop   ${origin}    write to it as a visitor
  Gateway     ${gatewayUrl}    the public API
  Console     ${gatewayUrl}/console/    read and answer as an operator
  Core        ${coreUrl}    the internal services
  Data        ${dataDir}    the database, the secrets and demo.json

Sign in to the console with this link as the owner of the demo. It works once, within ten minutes;
npm run admin -- console-link --owner creates another.

  ${signInLink}

Or answer the latest conversation from here:

  ${agentCommand}

Ctrl-C stops everything.
`)
}

closeAtEnd(closers)

try {
  await startAll()
} catch (error) {
  await closeAll(closers)
  failStart('start', error)
}
