import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { entriesAllowing, isOriginAllowed } from '../../contract/origins.ts'
import { byKey } from '../../platform/concurrency/batcher.ts'
import type { Bus } from '../bus.ts'
import { perCore } from '../core.ts'
import { inWorkspace, ServiceError } from '../errors.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { field, integer, text, validate } from '../rules.ts'
import { announcedMaxAgeMs, createLiveCache, type LiveCache } from '../wakeups/live-cache.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import {
  defaultOverlapSeconds,
  type IdentitySecret,
  newIdentitySecret,
  openIdentitySecret,
  rotatedIdentitySecrets,
} from './identity-secrets.ts'
import { validateInstallation } from './installation-settings.ts'
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
import { withTexts } from './translations.ts'
import { createWorkspaceStore, type WorkspaceStore } from './workspace-store.ts'

/** Caches connections and installations. Cached data is at most a second old. */
export interface SiteDirectory {
  connections: LiveCache<Connection>
  installations: LiveCache<Installation>
}

export const siteDirectoryOf = perCore((core): SiteDirectory => {
  const store = createWorkspaceStore(core.db)
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
 * The caller's workspace; `undefined` for a caller that may access all workspaces. For an object of
 * another workspace, the methods below throw `NotFound`.
 */
type Scope = string | undefined

/**
 * Manages workspaces, connections and installations. Writes are idempotent by operation name: a
 * repeat after a crash creates no second object and changes nothing twice. Without an operation
 * name, each call is a separate operation.
 */
export interface Workspaces {
  /** Creates a workspace. Errors: `ValidationFailed`. */
  createWorkspace(name: string, operation?: string): Promise<Workspace>
  /** Returns a workspace. Errors: `NotFound` if it does not exist. */
  findWorkspace(workspaceId: string): Promise<Workspace>
  /**
   * Returns workspaces in the order of their ids, beginning after the given id; 100 by default.
   * Errors: `ValidationFailed`.
   */
  listWorkspaces(after: string, limit?: number): Promise<Workspace[]>
  /** Sets only the given fields. Errors: `NotFound` if it does not exist, `ValidationFailed`. */
  updateWorkspace(workspaceId: string, settings: WorkspaceSettings, operation?: string): Promise<Workspace>
  /** Returns a connection. Errors: `NotFound` if it is unknown or in another workspace. */
  findConnection(connectionId: string, scope: Scope): Promise<Connection>
  listConnections(workspaceId: string): Promise<Connection[]>
  /**
   * Creates a connection. Errors: `NotFound` if the workspace is unknown or not the caller's,
   * `ValidationFailed`.
   */
  createConnection(workspaceId: string, name: string, scope: Scope, operation?: string): Promise<Connection>
  /**
   * Enables or disables a connection. Errors: `NotFound` if it is unknown or in another workspace.
   */
  setConnectionStatus(
    connectionId: string,
    status: ConnectionStatus,
    scope: Scope,
    operation?: string,
  ): Promise<Connection>
  /** Returns an installation. Errors: `NotFound` if it is unknown or in another workspace. */
  findInstallation(publicSiteKey: string, scope: Scope): Promise<Installation>
  listInstallations(workspaceId: string): Promise<Installation[]>
  /**
   * Creates an installation. Errors: `NotFound` if the connection is unknown or in another
   * workspace, `ValidationFailed`.
   */
  createInstallation(
    connectionId: string,
    settings: InstallationSettings,
    scope: Scope,
    operation?: string,
  ): Promise<{ installation: Installation; identitySecret: IdentitySecret }>
  /** Returns the site key of the installation that an operation creates. */
  plannedSiteKey(operation: string): string
  /**
   * Sets only the given fields. Errors: `NotFound` if the installation is unknown or in another
   * workspace, `ValidationFailed`.
   */
  updateInstallation(
    publicSiteKey: string,
    settings: InstallationSettings,
    scope: Scope,
    operation?: string,
  ): Promise<Installation>
  /**
   * Adds a new identity secret. Errors: `NotFound` if the installation is unknown or in another
   * workspace; `ValidationFailed`; `RateLimited` while too many replaced secrets are kept;
   * `IdempotencyConflict` if the installation no longer accepts the new secret.
   */
  rotateIdentitySecret(
    publicSiteKey: string,
    scope: Scope,
    how?: { operation?: string; overlapSeconds?: number | undefined },
  ): Promise<IdentitySecret>
  /**
   * Returns the secret with this key id. Errors: `IdempotencyConflict` if the installation no
   * longer accepts the secret.
   */
  identitySecret(installation: Installation, kid: string): IdentitySecret
  /** Returns whether an enabled installation allows the origin. */
  isOriginKnown(origin: string): Promise<boolean>
  /**
   * Returns the installation of a site key, if pages of the origin may use it. Errors:
   * `InstallationNotFound`, `OriginNotAllowed`, `ConnectionDisabled`.
   */
  installationFor(publicSiteKey: string, origin: string): Promise<Installation>
}

interface WorkspacesDependencies {
  store: WorkspaceStore
  directory: SiteDirectory
  secretBox: SecretBox
  plannedIds: PlannedIds
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
  bus: Bus
  now: () => number
}

export function createWorkspaces(dependencies: WorkspacesDependencies): Workspaces {
  const { store, directory, secretBox, plannedIds, wakeups, bus, now } = dependencies

  async function connectionIn(connectionId: string, scope: Scope) {
    const [connection] = await store.findConnections([connectionId])
    return inWorkspace(connection, scope)
  }

  async function installationIn(publicSiteKey: string, scope: Scope) {
    const [installation] = await store.findInstallations([publicSiteKey])
    return inWorkspace(installation, scope)
  }

  const findWorkspace = async (workspaceId: string) => inWorkspace(await store.findWorkspace(workspaceId), undefined)

  return {
    findWorkspace,
    findConnection: connectionIn,
    listConnections: (workspaceId) => store.listConnections(workspaceId),
    findInstallation: installationIn,
    plannedSiteKey: (operation) => plannedIds('pk', operation),
    listInstallations: (workspaceId) => store.listInstallations(workspaceId),

    async listWorkspaces(after, limit = 100) {
      validate(field('/limit', limit, integer(1, 1000)))
      return store.listWorkspaces(after, limit)
    },

    async createWorkspace(name, operation = randomUUID()) {
      validate(field('/name', name, text(1, 128)))
      const workspace = { workspaceId: plannedIds('ws', operation), name, createdAt: new Date(now()) }
      await store.insertWorkspace(workspace)
      return workspace
    },

    async updateWorkspace(workspaceId, settings, operation = randomUUID()) {
      await findWorkspace(workspaceId)
      validate(field('/name', settings.name, text(1, 128)), ...retentionIssues(settings))
      await store.updateWorkspace(workspaceId, settings, new Date(now()), operation)
      bus.emit('due', 'sweep of old data')
      return findWorkspace(workspaceId)
    },

    async createConnection(workspaceId, name, scope, operation = randomUUID()) {
      inWorkspace(await store.findWorkspace(workspaceId), scope)
      validate(field('/name', name, text(1, 128)))
      const connection: Connection = {
        connectionId: plannedIds('con', operation),
        workspaceId,
        name,
        status: 'enabled',
        statusVersion: 0,
      }
      await store.insertConnection(connection)
      return connection
    },

    async setConnectionStatus(connectionId, status, scope, operation = randomUUID()) {
      await connectionIn(connectionId, scope)
      await wakeups.changing([connectionId], () => store.setConnectionStatus(connectionId, status, operation))
      return connectionIn(connectionId, scope)
    },

    async createInstallation(connectionId, settings, scope, operation = randomUUID()) {
      const { workspaceId } = await connectionIn(connectionId, scope)
      validateInstallation({ ...settings, origins: settings.origins ?? [] })
      const publicSiteKey = plannedIds('pk', operation)
      const kid = plannedIds('key', operation)
      await store.insertInstallation({
        publicSiteKey,
        connectionId,
        workspaceId,
        origins: [],
        enabled: true,
        defaultLocale: 'en',
        ...settings,
        appearance: withTexts({ ...defaultAppearance, ...settings.appearance }),
        capabilities: { ...defaultCapabilities, ...settings.capabilities },
        identitySecrets: [newIdentitySecret(secretBox, kid, new Date(now()))],
      })
      await wakeups.stateChanged(publicSiteKey)
      // An earlier run of the operation may have created the installation with another secret. So
      // the secret is read from the stored document.
      const installation = await installationIn(publicSiteKey, scope)
      return { installation, identitySecret: openIdentitySecret(secretBox, installation, kid, new Date(now())) }
    },

    async updateInstallation(publicSiteKey, settings, scope, operation = randomUUID()) {
      await installationIn(publicSiteKey, scope)
      validateInstallation(settings)
      await wakeups.changing([publicSiteKey], () => store.updateInstallation(publicSiteKey, settings, operation))
      return installationIn(publicSiteKey, scope)
    },

    async rotateIdentitySecret(publicSiteKey, scope, how = {}) {
      const { operation = randomUUID(), overlapSeconds = defaultOverlapSeconds } = how
      let installation = await installationIn(publicSiteKey, scope)
      validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
      const seen = installation.identitySecrets
      const fresh = newIdentitySecret(secretBox, plannedIds('key', operation), new Date(now()))
      // Returns false if another write changed the secrets first.
      const tryOnce = (read: SealedIdentitySecret[]) => {
        const at = new Date(now())
        const rotated = rotatedIdentitySecrets(read, fresh, { seen, at, overlapSeconds })
        return store.replaceIdentitySecrets(publicSiteKey, read, rotated, operation)
      }
      await wakeups.changing([publicSiteKey], async () => {
        while (!(await tryOnce(installation.identitySecrets))) installation = await installationIn(publicSiteKey, scope)
      })
      return openIdentitySecret(secretBox, await installationIn(publicSiteKey, scope), fresh.kid, new Date(now()))
    },

    identitySecret: (installation, kid) => openIdentitySecret(secretBox, installation, kid, new Date(now())),

    async isOriginKnown(origin) {
      const entries = entriesAllowing(origin)
      return entries.length > 0 && store.anyInstallationAllows(entries)
    },

    async installationFor(publicSiteKey, origin) {
      const installation = await directory.installations.get(publicSiteKey)
      if (!installation?.enabled) throw new ServiceError(ErrorCode.INSTALLATION_NOT_FOUND)
      if (!isOriginAllowed(origin, installation.origins)) throw new ServiceError(ErrorCode.ORIGIN_NOT_ALLOWED)
      const connection = await directory.connections.get(installation.connectionId)
      if (connection?.status !== 'enabled') throw new ServiceError(ErrorCode.CONNECTION_DISABLED)
      return installation
    },
  }
}
