import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import type { CoreConfig } from '../core/config.ts'
import type { RunningCore } from '../core/context.ts'
import { insertOnce } from '../core/mongodb/insert-each.ts'
import { accessOf } from '../core/transport/caller.ts'
import { defaultAppearance, defaultCapabilities } from '../core/workspaces/model.ts'
import {
  operatorScopes,
  parseWorkspaceSessionSecrets,
  workspaceSessionAudience,
} from '../core/workspaces/workspace-sessions.ts'
import { findInstallations } from '../core/workspaces/workspaces.ts'
import { demoRemedy, readJsonFile } from '../platform/settings/data-file.ts'
import { writePrivately } from '../serve/private-folder.ts'

/** Content of `DATA_DIR/demo.json`: addresses and credentials of the demo. */
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

export const demoIds = { workspaceId: 'ws_demo', connectionId: 'con_demo', siteKey: 'pk_demo' }

/** Creates the demo workspace at the first start. Later starts reuse it. */
export async function seedDemo(
  core: RunningCore,
  config: CoreConfig,
  dataDir: string,
  given?: Pick<DemoFile, 'gatewayUrl' | 'coreUrl' | 'origin'>,
): Promise<DemoFile> {
  const { CORE_PORT, CORE_TLS_CERT } = config
  const { secretBox, bus } = core
  const { issue } = accessOf(core)
  const { workspaceId, connectionId, siteKey } = demoIds
  const earlier = readJsonFile<DemoFile>(join(dataDir, 'demo.json'), demoRemedy)
  const addresses = given ?? {
    gatewayUrl: earlier?.gatewayUrl ?? 'http://localhost:8080',
    coreUrl: `${CORE_TLS_CERT ? 'https' : 'http'}://localhost:${CORE_PORT}`,
    origin: earlier?.origin ?? 'http://localhost:8081',
  }

  const identity = { kid: 'demo', secret: randomBytes(32).toString('base64url') }
  // Change nothing if another process has seeded the same data.
  await insertOnce(core.db.workspaces, { _id: workspaceId, name: 'Demo', createdAt: new Date(core.now()) })
  const connection = { workspaceId, name: 'Demo shop', status: 'enabled', statusVersion: 0 } as const
  await insertOnce(core.db.connections, { _id: connectionId, ...connection })
  await insertOnce(core.db.installations, {
    _id: siteKey,
    connectionId,
    workspaceId,
    origins: [addresses.origin],
    enabled: true,
    appearance: defaultAppearance,
    capabilities: defaultCapabilities,
    defaultLocale: 'en',
    identitySecrets: [{ kid: identity.kid, sealed: secretBox.seal(identity.secret), createdAt: new Date() }],
  })
  const [installation] = await findInstallations(core, [siteKey])
  if (installation && !installation.origins.includes(addresses.origin)) {
    await core.db.installations.updateOne({ _id: siteKey }, { $addToSet: { origins: addresses.origin } })
    bus.emit('changed', [siteKey])
  }
  const [current] = installation?.identitySecrets ?? []

  const file: DemoFile = {
    ...addresses,
    siteKey,
    workspaceId,
    serviceToken: await issue({ subject: 'demo', scopes: [...operatorScopes] }),
    workspaceSession: await workspaceSession(config),
    identity: current ? { kid: current.kid, secret: secretBox.open(current.sealed) } : identity,
    mongodbUri: config.MONGODB_URI,
  }
  const header = (token: string) => `header = "Authorization: Bearer ${token}"\n`
  const files = {
    'demo.json': `${JSON.stringify(file, null, 2)}\n`,
    // Files for `curl -K`, so that no process list and no shell history has the token.
    'agent.curl': header(file.serviceToken),
    'workspace.curl': header(file.workspaceSession),
    'gateway.token': await issue({ subject: 'gateway', scopes: ['visitors:act'] }),
    'delivery.token': await issue({ subject: 'delivery', scopes: ['deliveries:work'] }),
    'bot.token': await issue({ subject: 'bot', scopes: ['bots:act'], workspaceId }),
  }
  for (const [name, content] of Object.entries(files)) await writePrivately(join(dataDir, name), content)
  return file
}

/** Signs a session with all operator scopes. Empty without a secret: the core then verifies with a public key set. */
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
