import { randomBytes } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { formDefinitionIssues } from '../leads/forms.ts'
import type { Wakeups } from '../log/wakeups.ts'
import { field, hexColour, integer, locale, oneOf, text, url, validate } from '../rules.ts'
import { entriesAllowing, isOriginAllowed, isOriginEntry } from '../sessions/origins.ts'
import type {
  Appearance,
  Capabilities,
  Connection,
  ConnectionStatus,
  Forms,
  Installation,
  Workspace,
  WorkspaceStore,
} from '../store/workspaces.ts'
import type { Directory } from './directory.ts'

export interface IdentitySecret {
  kid: string
  secret: string
}

/** What of an installation can be set; what is left out stays, or has its default. */
export interface InstallationSettings {
  origins?: string[]
  enabled?: boolean
  appearance?: Partial<Appearance>
  capabilities?: Partial<Capabilities>
  defaultLocale?: string
  /** Each form that is given replaces the one before. */
  forms?: Forms
}

/** A workspace of the caller's: `undefined` for a caller that may act for every one. */
type Scope = string | undefined

export interface Workspaces {
  createWorkspace(name: string): Promise<Workspace>
  /** Errors: `NotFound`. */
  findWorkspace(workspaceId: string): Promise<Workspace>
  /** By id, those after one, 100 where no limit is given. Errors: `ValidationFailed`. */
  listWorkspaces(after: string, limit?: number): Promise<Workspace[]>
  listConnections(workspaceId: string): Promise<Connection[]>
  createConnection(workspaceId: string, name: string, scope: Scope): Promise<Connection>
  setConnectionStatus(connectionId: string, status: ConnectionStatus, scope: Scope): Promise<Connection>
  createInstallation(
    connectionId: string,
    settings: InstallationSettings,
    scope: Scope,
  ): Promise<{ installation: Installation; identitySecret: IdentitySecret }>
  updateInstallation(publicSiteKey: string, settings: InstallationSettings, scope: Scope): Promise<Installation>
  listInstallations(workspaceId: string): Promise<Installation[]>
  rotateIdentitySecret(publicSiteKey: string, scope: Scope): Promise<IdentitySecret>
  /** Whether some enabled installation allows the origin. */
  isOriginKnown(origin: string): Promise<boolean>
  /**
   * The installation that a site key names, for a page of that origin.
   * Errors: `InstallationNotFound`, `OriginNotAllowed`, `ConnectionDisabled`.
   */
  installationFor(publicSiteKey: string, origin: string): Promise<Installation>
}

export interface WorkspacesDependencies {
  store: WorkspaceStore
  directory: Directory
  secretBox: SecretBox
  wakeups: Pick<Wakeups, 'stateChanged'>
  now: () => number
}

/** How many identity secrets are live at once: the current one and, during a rotation, the one before. */
const liveSecrets = 2
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

/** Workspaces, their connections and the widget installations of these. */
export function createWorkspaces({ store, directory, secretBox, wakeups, now }: WorkspacesDependencies): Workspaces {
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

  function newSecret(): IdentitySecret {
    return { kid: newId('key'), secret: randomBytes(32).toString('base64url') }
  }

  return {
    async createWorkspace(name) {
      validate(field('/name', name, text(1, 128)))
      const workspace = { workspaceId: newId('ws'), name, createdAt: new Date(now()) }
      await store.insertWorkspace(workspace)
      return workspace
    },

    findWorkspace: async (workspaceId) => inScope(await store.findWorkspace(workspaceId), undefined),

    async listWorkspaces(after, limit = 100) {
      validate(field('/limit', limit, integer(1, 1000)))
      return store.listWorkspaces(after, limit)
    },

    listConnections: (workspaceId) => store.listConnections(workspaceId),

    async createConnection(workspaceId, name, scope) {
      inScope(await store.findWorkspace(workspaceId), scope)
      validate(field('/name', name, text(1, 128)))
      const connection: Connection = {
        connectionId: newId('con'),
        workspaceId,
        name,
        status: 'enabled',
        statusVersion: 0,
      }
      await store.insertConnection(connection)
      return connection
    },

    async setConnectionStatus(connectionId, status, scope) {
      await connectionIn(connectionId, scope)
      await store.setConnectionStatus(connectionId, status)
      await wakeups.stateChanged(connectionId)
      return connectionIn(connectionId, scope)
    },

    async createInstallation(connectionId, settings, scope) {
      const { workspaceId } = await connectionIn(connectionId, scope)
      validateSettings({ ...settings, origins: settings.origins ?? [] })
      const identitySecret = newSecret()
      const installation: Installation = {
        publicSiteKey: newId('pk'),
        connectionId,
        workspaceId,
        origins: settings.origins ?? [],
        enabled: true,
        appearance: { ...defaultAppearance, ...settings.appearance },
        capabilities: { ...defaultCapabilities, ...settings.capabilities },
        defaultLocale: settings.defaultLocale ?? 'en',
        ...(settings.forms && { forms: settings.forms }),
        identitySecrets: [{ kid: identitySecret.kid, sealed: secretBox.seal(identitySecret.secret) }],
      }
      await store.insertInstallation(installation)
      await wakeups.stateChanged(installation.publicSiteKey)
      return { installation, identitySecret }
    },

    async updateInstallation(publicSiteKey, settings, scope) {
      const { appearance, capabilities, forms } = await installationIn(publicSiteKey, scope)
      validateSettings(settings)
      await store.updateInstallation(publicSiteKey, {
        ...settings,
        appearance: { ...appearance, ...settings.appearance },
        capabilities: { ...capabilities, ...settings.capabilities },
        ...(settings.forms && { forms: { ...forms, ...settings.forms } }),
      })
      await wakeups.stateChanged(publicSiteKey)
      return installationIn(publicSiteKey, scope)
    },

    listInstallations: (workspaceId) => store.listInstallations(workspaceId),

    async rotateIdentitySecret(publicSiteKey, scope) {
      const { identitySecrets } = await installationIn(publicSiteKey, scope)
      const secret = newSecret()
      const sealed = { kid: secret.kid, sealed: secretBox.seal(secret.secret) }
      await store.updateInstallation(publicSiteKey, {
        identitySecrets: [sealed, ...identitySecrets].slice(0, liveSecrets),
      })
      await wakeups.stateChanged(publicSiteKey)
      return secret
    },

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
