import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import type { CoreConfig } from '../core/config.ts'
import type { RunningCore } from '../core/context.ts'
import { accessOf } from '../core/transport/caller.ts'
import { defaultAppearance, defaultCapabilities } from '../core/workspaces/model.ts'
import {
  operatorScopes,
  parseWorkspaceSessionSecrets,
  workspaceSessionAudience,
} from '../core/workspaces/workspace-sessions.ts'
import { workspaceStoreOf } from '../core/workspaces/workspace-store.ts'
import { demoRemedy, readJsonFile } from '../platform/settings/data-file.ts'
import { writePrivately } from '../serve/private-folder.ts'

/** `DATA_DIR/demo.json`: addresses and credentials. */
export interface DemoFile {
  gatewayUrl: string
  coreUrl: string
  siteKey: string
  origin: string
  workspaceId: string
  serviceToken: string
  workspaceSession: string
  identity: { kid: string; secret: string }
  mongodbUri: string
}

interface DemoAddresses {
  gatewayUrl: string
  coreUrl: string
  origin: string
}

export const demoIds = { workspaceId: 'ws_demo', connectionId: 'con_demo', siteKey: 'pk_demo' }

/** Later starts reuse the demo workspace of the first. */
export async function seedDemo(
  core: RunningCore,
  config: CoreConfig,
  dataDir: string,
  given?: DemoAddresses,
): Promise<DemoFile> {
  const { CORE_PORT, CORE_TLS_CERT } = config
  const { secretBox, bus } = core
  const workspaceStore = workspaceStoreOf(core)
  const path = join(dataDir, 'demo.json')
  const earlier = readJsonFile<DemoFile>(path, demoRemedy)
  const addresses = given ?? {
    gatewayUrl: earlier?.gatewayUrl ?? 'http://localhost:8080',
    coreUrl: `${CORE_TLS_CERT ? 'https' : 'http'}://localhost:${CORE_PORT}`,
    origin: earlier?.origin ?? 'http://localhost:8081',
  }

  const identity = { kid: 'demo', secret: randomBytes(32).toString('base64url') }
  await workspaceStore.insertWorkspace({
    workspaceId: demoIds.workspaceId,
    name: 'Demo',
    createdAt: new Date(core.now()),
  })
  await workspaceStore.insertConnection({
    connectionId: demoIds.connectionId,
    workspaceId: demoIds.workspaceId,
    name: 'Demo shop',
    status: 'enabled',
    statusVersion: 0,
  })
  await workspaceStore.insertInstallation({
    publicSiteKey: demoIds.siteKey,
    connectionId: demoIds.connectionId,
    workspaceId: demoIds.workspaceId,
    origins: [addresses.origin],
    enabled: true,
    appearance: defaultAppearance,
    capabilities: defaultCapabilities,
    defaultLocale: 'en',
    identitySecrets: [{ kid: identity.kid, sealed: secretBox.seal(identity.secret), createdAt: new Date() }],
  })
  const [installation] = await workspaceStore.findInstallations([demoIds.siteKey])
  if (installation && !installation.origins.includes(addresses.origin)) {
    await workspaceStore.addOrigin(demoIds.siteKey, addresses.origin)
    bus.emit('changed', [demoIds.siteKey])
  }
  const [current] = installation?.identitySecrets ?? []

  const file: DemoFile = {
    ...addresses,
    siteKey: demoIds.siteKey,
    workspaceId: demoIds.workspaceId,
    serviceToken: await accessOf(core).issue({ subject: 'demo', scopes: [...operatorScopes] }),
    workspaceSession: await workspaceSession(config),
    identity: current ? { kid: current.kid, secret: secretBox.open(current.sealed) } : identity,
    mongodbUri: config.MONGODB_URI,
  }
  await writePrivately(path, `${JSON.stringify(file, null, 2)}\n`)
  // For `curl -K`: process lists and the shell history do not get the token.
  await writePrivately(join(dataDir, 'agent.curl'), `header = "Authorization: Bearer ${file.serviceToken}"\n`)
  await writePrivately(join(dataDir, 'workspace.curl'), `header = "Authorization: Bearer ${file.workspaceSession}"\n`)
  await writePrivately(
    join(dataDir, 'gateway.token'),
    await accessOf(core).issue({ subject: 'gateway', scopes: ['visitors:act'] }),
  )
  await writePrivately(
    join(dataDir, 'delivery.token'),
    await accessOf(core).issue({ subject: 'delivery', scopes: ['deliveries:work'] }),
  )
  const { workspaceId } = demoIds
  await writePrivately(
    join(dataDir, 'bot.token'),
    await accessOf(core).issue({ subject: 'bot', scopes: ['bots:act'], workspaceId }),
  )
  return file
}

/** With all operator scopes. Empty without a secret: the core then verifies sessions with a public key set. */
async function workspaceSession(config: CoreConfig) {
  const { WORKSPACE_SESSION_SECRET, WORKSPACE_SESSION_ISSUER: issuer } = config
  const [secret] = parseWorkspaceSessionSecrets(WORKSPACE_SESSION_SECRET)
  if (secret === undefined) return ''
  const claims = { wid: demoIds.workspaceId, scope: [...operatorScopes].join(' '), ...(issuer && { iss: issuer }) }
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject('operator_demo')
    .setAudience(workspaceSessionAudience)
    .setIssuedAt()
    .setExpirationTime('30d')
    .sign(secret)
}
