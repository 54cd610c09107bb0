import { randomUUID } from 'node:crypto'
import { entriesAllowing, isOriginAllowed } from '../../contract/origins.ts'
import { byKey } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { inWorkspace, ServiceError } from '../errors.ts'
import { field, integer, text, validate } from '../rules.ts'
import { announcedMaxAgeMs, createLiveCache, type LiveCache } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import {
  defaultOverlapSeconds,
  type IdentitySecret,
  newIdentitySecret,
  openIdentitySecret,
  rotatedIdentitySecrets,
} from './identity-secrets.ts'
import { validateInstallation, withTexts } from './installation-settings.ts'
import {
  type Connection,
  type ConnectionStatus,
  defaultAppearance,
  defaultCapabilities,
  type Installation,
  type InstallationSettings,
  type SealedIdentitySecret,
  type Workspace,
  type WorkspaceSettings,
} from './model.ts'
import { retentionIssues } from './retention.ts'
import { workspaceStoreOf } from './workspace-store.ts'

/** Cached data, at most a second old. */
export interface SiteDirectory {
  connections: LiveCache<Connection>
  installations: LiveCache<Installation>
}

export const siteDirectoryOf = perCore((core): SiteDirectory => {
  const store = workspaceStoreOf(core)
  const options = {
    bus: core.bus,
    isCurrent: wakeupsOf(core).isCurrent,
    maxEntries: 10_000,
    maxAgeMs: announcedMaxAgeMs,
  }
  return {
    connections: createLiveCache({
      ...options,
      loadMany: async (ids) => byKey(await store.findConnections(ids), ({ connectionId }) => connectionId),
    }),
    installations: createLiveCache({
      ...options,
      loadMany: async (keys) => byKey(await store.findInstallations(keys), ({ publicSiteKey }) => publicSiteKey),
    }),
  }
})

/**
 * The caller's workspace; undefined for all. The functions below throw `NotFound` for an object of
 * another workspace, as for an unknown one.
 */
type Scope = string | undefined

// Writes are idempotent by operation name: a repeat after a crash creates and changes nothing twice.

export const findWorkspace = async (core: Core, workspaceId: string) =>
  inWorkspace(await workspaceStoreOf(core).findWorkspace(workspaceId), undefined)

export const findConnection = async (core: Core, connectionId: string, scope: Scope) =>
  inWorkspace((await workspaceStoreOf(core).findConnections([connectionId]))[0], scope)

export const findInstallation = async (core: Core, publicSiteKey: string, scope: Scope) =>
  inWorkspace((await workspaceStoreOf(core).findInstallations([publicSiteKey]))[0], scope)

/** Returns workspaces in the order of their ids. Errors: `ValidationFailed`. */
export async function listWorkspaces(core: Core, after: string, limit: number = 100): Promise<Workspace[]> {
  validate(field('/limit', limit, integer(1, 1000)))
  return workspaceStoreOf(core).listWorkspaces(after, limit)
}

export async function createWorkspace(core: Core, name: string, operation: string = randomUUID()): Promise<Workspace> {
  validate(field('/name', name, text(1, 128)))
  const workspace = { workspaceId: core.plannedIds('ws', operation), name, createdAt: dateOf(core) }
  await workspaceStoreOf(core).insertWorkspace(workspace)
  return workspace
}

/** Sets only the given fields. Errors: `NotFound`, `ValidationFailed`. */
export async function updateWorkspace(
  core: Core,
  workspaceId: string,
  settings: WorkspaceSettings,
  operation: string = randomUUID(),
): Promise<Workspace> {
  await findWorkspace(core, workspaceId)
  validate(field('/name', settings.name, text(1, 128)), ...retentionIssues(settings))
  await workspaceStoreOf(core).updateWorkspace(workspaceId, settings, dateOf(core), operation)
  core.bus.emit('due', 'sweep of old data')
  return findWorkspace(core, workspaceId)
}

/** Errors: `NotFound`, `ValidationFailed`. */
export async function createConnection(
  core: Core,
  workspaceId: string,
  name: string,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<Connection> {
  inWorkspace(await workspaceStoreOf(core).findWorkspace(workspaceId), scope)
  validate(field('/name', name, text(1, 128)))
  const connection: Connection = {
    connectionId: core.plannedIds('con', operation),
    workspaceId,
    name,
    status: 'enabled',
    statusVersion: 0,
  }
  await workspaceStoreOf(core).insertConnection(connection)
  return connection
}

export async function setConnectionStatus(
  core: Core,
  connectionId: string,
  status: ConnectionStatus,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<Connection> {
  await findConnection(core, connectionId, scope)
  await wakeupsOf(core).changing([connectionId], () =>
    workspaceStoreOf(core).setConnectionStatus(connectionId, status, operation),
  )
  return findConnection(core, connectionId, scope)
}

/** Errors: `NotFound`, `ValidationFailed`. */
export async function createInstallation(
  core: Core,
  connectionId: string,
  settings: InstallationSettings,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<{ installation: Installation; identitySecret: IdentitySecret }> {
  const { workspaceId } = await findConnection(core, connectionId, scope)
  validateInstallation({ ...settings, origins: settings.origins ?? [] })
  const publicSiteKey = core.plannedIds('pk', operation)
  const kid = core.plannedIds('key', operation)
  await workspaceStoreOf(core).insertInstallation({
    publicSiteKey,
    connectionId,
    workspaceId,
    origins: [],
    enabled: true,
    defaultLocale: 'en',
    ...settings,
    appearance: withTexts({ ...defaultAppearance, ...settings.appearance }),
    capabilities: { ...defaultCapabilities, ...settings.capabilities },
    identitySecrets: [newIdentitySecret(core, kid)],
  })
  await wakeupsOf(core).stateChanged(publicSiteKey)
  // An earlier run may have created it with another secret, so the stored one is read.
  const installation = await findInstallation(core, publicSiteKey, scope)
  return { installation, identitySecret: openIdentitySecret(core, installation, kid) }
}

/** Sets only the given fields. Errors: `NotFound`, `ValidationFailed`. */
export async function updateInstallation(
  core: Core,
  publicSiteKey: string,
  settings: InstallationSettings,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<Installation> {
  await findInstallation(core, publicSiteKey, scope)
  validateInstallation(settings)
  await wakeupsOf(core).changing([publicSiteKey], () =>
    workspaceStoreOf(core).updateInstallation(publicSiteKey, settings, operation),
  )
  return findInstallation(core, publicSiteKey, scope)
}

/**
 * Errors: `NotFound`; `ValidationFailed`; `RateLimited` while too many replaced secrets are kept;
 * `IdempotencyConflict` if the installation no longer accepts the new secret.
 */
export async function rotateIdentitySecret(
  core: Core,
  publicSiteKey: string,
  scope: Scope,
  how: { operation?: string; overlapSeconds?: number | undefined } = {},
): Promise<IdentitySecret> {
  const { operation = randomUUID(), overlapSeconds = defaultOverlapSeconds } = how
  let installation = await findInstallation(core, publicSiteKey, scope)
  validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
  const seen = installation.identitySecrets
  const fresh = newIdentitySecret(core, core.plannedIds('key', operation))
  // Returns false if another write changed the secrets first.
  const tryOnce = (read: SealedIdentitySecret[]) => {
    const at = dateOf(core)
    const rotated = rotatedIdentitySecrets(read, fresh, { seen, at, overlapSeconds })
    return workspaceStoreOf(core).replaceIdentitySecrets(publicSiteKey, read, rotated, operation)
  }
  await wakeupsOf(core).changing([publicSiteKey], async () => {
    while (!(await tryOnce(installation.identitySecrets)))
      installation = await findInstallation(core, publicSiteKey, scope)
  })
  return openIdentitySecret(core, await findInstallation(core, publicSiteKey, scope), fresh.kid)
}

export async function isOriginKnown(core: Core, origin: string): Promise<boolean> {
  const entries = entriesAllowing(origin)
  return entries.length > 0 && workspaceStoreOf(core).anyInstallationAllows(entries)
}

/**
 * Returns an installation that pages of the origin may use. Errors: `InstallationNotFound`,
 * `OriginNotAllowed`, `ConnectionDisabled`.
 */
export async function installationFor(core: Core, publicSiteKey: string, origin: string): Promise<Installation> {
  const installation = await siteDirectoryOf(core).installations.get(publicSiteKey)
  if (!installation?.enabled) throw new ServiceError('InstallationNotFound')
  if (!isOriginAllowed(origin, installation.origins)) throw new ServiceError('OriginNotAllowed')
  const connection = await siteDirectoryOf(core).connections.get(installation.connectionId)
  if (connection?.status !== 'enabled') throw new ServiceError('ConnectionDisabled')
  return installation
}
