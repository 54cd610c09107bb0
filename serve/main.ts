// `npm run serve`: the service for production on one machine. Runs gateway, core and delivery worker in one
// process, beside one MongoDB.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readCoreConfig, requireSettings } from '../core/config.ts'
import type { RunningCore } from '../core/context.ts'
import { createKeyring, parseSecretKeys } from '../core/keys/keyring.ts'
import { createOwnerLink } from '../core/operators/console-sessions.ts'
import { startCore } from '../core/start-core.ts'
import { createAccess } from '../core/workspaces/access.ts'
import { operatorScopes } from '../core/workspaces/workspace-sessions.ts'
import { createWorkspace, listWorkspaces } from '../core/workspaces/workspaces.ts'
import { readDeliveryConfig } from '../delivery/config.ts'
import { readConfig } from '../gateway/config.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { startTracing } from '../platform/observability/tracing.ts'
import { warnOfMisspeltNames } from '../platform/settings/config.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { failStart } from '../platform/settings/start-faults.ts'
import { readServeConfig } from './config.ts'
import { withDataFolderSecrets } from './data-folder.ts'
import { type Closers, closeAll, closeAtEnd, coreAddress, startParts } from './parts.ts'
import { makePrivate, writePrivately } from './private-folder.ts'

const closers: Closers = []
const stopping = new AbortController()

async function startAll() {
  const { DATA_DIR, env } = readServeConfig()
  const given = readCoreConfig(env)
  requireSettings(given, 'MONGODB_URI')
  const logger = createLogger('core', given.LOG_LEVEL)
  warnOfMisspeltNames(logger)
  closers.push(await startTracing('service'))
  const config = await withDataFolderSecrets(given, DATA_DIR)
  const { issue } = createAccess(createKeyring(parseSecretKeys(config.SECRET_KEYS)), Date.now)
  const configs = {
    core: config,
    gateway: readConfig(env, { gatewayToken: await issue({ subject: 'gateway', scopes: ['visitors:act'] }) }),
    delivery: readDeliveryConfig(env, await issue({ subject: 'delivery', scopes: ['deliveries:work'] })),
  }
  const core = await startCore(config, { logger, signal: stopping.signal })
  closers.push(core.stop)
  if (!existsSync(join(import.meta.dirname, '../console/dist/index.html')))
    throw new SettingError('the pages of the console are missing; npm run build makes them')
  const gatewayUrl = config.PUBLIC_URL || `http://localhost:${configs.gateway.GATEWAY_PORT}`
  const link = await firstOwnerLink(core, gatewayUrl)
  const [workspace, other] = await listWorkspaces(core, '', 2)
  makePrivate(DATA_DIR)
  // The administration command finds the core and its token here.
  const admin = {
    gatewayUrl,
    coreUrl: coreAddress(config.CORE_HOST, config.CORE_PORT),
    serviceToken: await issue({ subject: 'admin', scopes: [...operatorScopes] }),
    workspaceId: other ? undefined : workspace?.workspaceId,
  }
  await writePrivately(join(DATA_DIR, 'admin.json'), `${JSON.stringify(admin, null, 2)}\n`)
  await startParts(core, configs, closers)
  console.log(`\nService is ready: ${gatewayUrl}/console/\n`)
  if (link) console.log(`Sign in as the first owner with this link. It works once, within ten minutes:\n\n  ${link}\n`)
}

/** Creates the first workspace and a link that signs its owner in. Returns undefined if a workspace exists. */
async function firstOwnerLink(core: RunningCore, gatewayUrl: string) {
  if ((await listWorkspaces(core, '', 1)).length > 0) return undefined
  const { workspaceId } = await createWorkspace(core, new URL(gatewayUrl).hostname, 'first workspace')
  const { secret } = await createOwnerLink(core, workspaceId, 'owner')
  return `${gatewayUrl}/console/#sign-in=${secret}`
}

closeAtEnd(closers, () => stopping.abort())

try {
  await startAll()
} catch (error) {
  if (!stopping.signal.aborted) {
    await closeAll(closers)
    failStart('serve', error)
  }
}
