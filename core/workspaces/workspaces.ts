import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { PlannedIds } from '../keys/planned-ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { formDefinitionIssues } from '../leads/forms.ts'
import type { Wakeups } from '../log/wakeups.ts'
import { field, hexColour, integer, locale, oneOf, text, url, validate } from '../rules.ts'
import { entriesAllowing, isOriginAllowed, isOriginEntry } from '../visitors/origins.ts'
import type { Directory } from './directory.ts'
import {
  defaultOverlapSeconds,
  type IdentitySecret,
  newIdentitySecret,
  openIdentitySecret,
  rotatedIdentitySecrets,
} from './identity-secrets.ts'
import type {
  Appearance,
  Capabilities,
  Connection,
  ConnectionStatus,
  Installation,
  InstallationSettings,
  SealedIdentitySecret,
  Workspace,
  WorkspaceStore,
} from './workspace-store.ts'

/** The caller's workspace; `undefined` for a caller that may act for all. */
type Scope = string | undefined

/**
 * Writes are idempotent by operation name: a repeat after a crash creates the same objects and
 * changes nothing twice. Without a name, each call is a separate operation.
 */
export interface Workspaces {
  /** Errors: `ValidationFailed`. */
  createWorkspace(name: string, operation?: string): Promise<Workspace>
  /** Errors: `NotFound`. */
  findWorkspace(workspaceId: string): Promise<Workspace>
  /** By id, after the given one; 100 by default. Errors: `ValidationFailed`. */
  listWorkspaces(after: string, limit?: number): Promise<Workspace[]>
  /** Errors: `NotFound`. */
  findConnection(connectionId: string, scope: Scope): Promise<Connection>
  listConnections(workspaceId: string): Promise<Connection[]>
  /** Errors: `NotFound`, `ValidationFailed`. */
  createConnection(workspaceId: string, name: string, scope: Scope, operation?: string): Promise<Connection>
  /** Errors: `NotFound`. */
  setConnectionStatus(
    connectionId: string,
    status: ConnectionStatus,
    scope: Scope,
    operation?: string,
  ): Promise<Connection>
  /** Errors: `NotFound`. */
  findInstallation(publicSiteKey: string, scope: Scope): Promise<Installation>
  listInstallations(workspaceId: string): Promise<Installation[]>
  /** Errors: `NotFound`, `ValidationFailed`. */
  createInstallation(
    connectionId: string,
    settings: InstallationSettings,
    scope: Scope,
    operation?: string,
  ): Promise<{ installation: Installation; identitySecret: IdentitySecret }>
  /** Sets only the given fields. Errors: `NotFound`, `ValidationFailed`. */
  updateInstallation(
    publicSiteKey: string,
    settings: InstallationSettings,
    scope: Scope,
    operation?: string,
  ): Promise<Installation>
  /**
   * Errors: `NotFound`, `ValidationFailed`, `RateLimited` while too many replaced secrets are kept,
   * `IdempotencyConflict` if the new secret is no longer live.
   */
  rotateIdentitySecret(
    publicSiteKey: string,
    scope: Scope,
    how?: { operation?: string; overlapSeconds?: number | undefined },
  ): Promise<IdentitySecret>
  /** A live secret of the installation. Errors: `IdempotencyConflict` if it is no longer live. */
  identitySecret(installation: Installation, kid: string): IdentitySecret
  /** Whether some enabled installation allows the origin. */
  isOriginKnown(origin: string): Promise<boolean>
  /**
   * The installation of a site key, for a page of that origin. Errors: `InstallationNotFound`,
   * `OriginNotAllowed`, `ConnectionDisabled`.
   */
  installationFor(publicSiteKey: string, origin: string): Promise<Installation>
}

export interface WorkspacesDependencies {
  store: WorkspaceStore
  directory: Directory
  secretBox: SecretBox
  plannedIds: PlannedIds
  wakeups: Pick<Wakeups, 'stateChanged'>
  now: () => number
}

const maxOrigins = 64

export const defaultAppearance: Appearance = {
  title: 'Chat with us',
  greeting: 'Hello! How can we help?',
  accentColor: '#1f6f5c',
  position: 'right',
}

export const defaultCapabilities: Capabilities = {
  identity: true,
  typing: true,
  pageContext: true,
  navigation: true,
  screenshots: true,
  preChatForm: false,
  offlineForm: false,
  messageRetryRoute: false,
}

/** Workspaces, their connections and widget installations. */
export function createWorkspaces(dependencies: WorkspacesDependencies): Workspaces {
  const { store, directory, secretBox, plannedIds, wakeups, now } = dependencies

  function inScope<T extends { workspaceId: string }>(found: T | undefined, scope: Scope): T {
    if (!found || (scope !== undefined && found.workspaceId !== scope)) throw new ServiceError(ErrorCode.NOT_FOUND)
    return found
  }

  async function connectionIn(connectionId: string, scope: Scope) {
    const [connection] = await store.findConnections([connectionId])
    return inScope(connection, scope)
  }

  async function installationIn(publicSiteKey: string, scope: Scope) {
    const [installation] = await store.findInstallations([publicSiteKey])
    return inScope(installation, scope)
  }

  return {
    findWorkspace: async (workspaceId) => inScope(await store.findWorkspace(workspaceId), undefined),
    findConnection: connectionIn,
    listConnections: (workspaceId) => store.listConnections(workspaceId),
    findInstallation: installationIn,
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

    async createConnection(workspaceId, name, scope, operation = randomUUID()) {
      inScope(await store.findWorkspace(workspaceId), scope)
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
      await store.setConnectionStatus(connectionId, status, operation)
      await wakeups.stateChanged(connectionId)
      return connectionIn(connectionId, scope)
    },

    async createInstallation(connectionId, settings, scope, operation = randomUUID()) {
      const { workspaceId } = await connectionIn(connectionId, scope)
      validateSettings({ ...settings, origins: settings.origins ?? [] })
      const publicSiteKey = plannedIds('pk', operation)
      const kid = plannedIds('key', operation)
      await store.insertInstallation({
        publicSiteKey,
        connectionId,
        workspaceId,
        origins: settings.origins ?? [],
        enabled: true,
        appearance: { ...defaultAppearance, ...settings.appearance },
        capabilities: { ...defaultCapabilities, ...settings.capabilities },
        defaultLocale: settings.defaultLocale ?? 'en',
        forms: settings.forms,
        identitySecrets: [newIdentitySecret(secretBox, kid)],
      })
      await wakeups.stateChanged(publicSiteKey)
      // Reads the stored document: an earlier run of the operation may have created it with another
      // secret.
      const installation = await installationIn(publicSiteKey, scope)
      return { installation, identitySecret: openIdentitySecret(secretBox, installation, kid) }
    },

    async updateInstallation(publicSiteKey, settings, scope, operation = randomUUID()) {
      await installationIn(publicSiteKey, scope)
      validateSettings(settings)
      await store.updateInstallation(publicSiteKey, settings, operation)
      await wakeups.stateChanged(publicSiteKey)
      return installationIn(publicSiteKey, scope)
    },

    async rotateIdentitySecret(publicSiteKey, scope, how = {}) {
      const { operation = randomUUID(), overlapSeconds = defaultOverlapSeconds } = how
      let installation = await installationIn(publicSiteKey, scope)
      validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
      const seen = installation.identitySecrets
      const fresh = newIdentitySecret(secretBox, plannedIds('key', operation))
      // A failed try means that another write succeeded.
      const tryOnce = (read: SealedIdentitySecret[]) => {
        const at = new Date(now())
        const rotated = rotatedIdentitySecrets(read, fresh, { seen, at, overlapSeconds })
        return store.replaceIdentitySecrets(publicSiteKey, read, rotated, operation)
      }
      while (!(await tryOnce(installation.identitySecrets))) installation = await installationIn(publicSiteKey, scope)
      await wakeups.stateChanged(publicSiteKey)
      return openIdentitySecret(secretBox, await installationIn(publicSiteKey, scope), fresh.kid)
    },

    identitySecret: (installation, kid) => openIdentitySecret(secretBox, installation, kid),

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

function validateSettings({ origins, appearance, defaultLocale, forms }: InstallationSettings) {
  validate(
    field('/origins', origins, ({ length }) =>
      length < 1 ? 'minItems' : length > maxOrigins ? 'maxItems' : undefined,
    ),
    ...(origins ?? []).map((origin, index) =>
      field(`/origins/${index}`, origin, (entry) => (isOriginEntry(entry) ? undefined : 'format')),
    ),
    field('/appearance/title', appearance?.title, text(1, 128)),
    field('/appearance/greeting', appearance?.greeting, text(0, 1024)),
    field('/appearance/accentColor', appearance?.accentColor, hexColour),
    field('/appearance/position', appearance?.position, oneOf<Appearance['position']>('left', 'right')),
    field('/appearance/logoUrl', appearance?.logoUrl, url('https')),
    field('/defaultLocale', defaultLocale, locale),
    ...formDefinitionIssues('/forms/preChat/fields', forms?.preChat ?? []),
    ...formDefinitionIssues('/forms/offline/fields', forms?.offline ?? []),
  )
}
