import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type {
  Appearance as AppearanceMessage,
  Capabilities as CapabilitiesMessage,
  Forms as FormsMessage,
} from '#proto/session/v1/session_pb.js'
import {
  type ConnectionSchema,
  ConnectionStatus,
  type InstallationSchema,
  WorkspaceService,
} from '#proto/workspace/v1/workspace_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import {
  type Appearance,
  type Capabilities,
  type Connection,
  capabilityNames,
  type Installation,
} from '../store/workspaces.ts'
import type { InstallationSettings } from '../workspaces/workspaces.ts'
import { callerOf, requiredWorkspace } from './caller.ts'
import { fromForms, toForms } from './forms.ts'

/** `service.workspace.v1.WorkspaceService` over the domain. */
export function workspaceService(router: ConnectRouter, { workspaces }: CoreContext): void {
  router.service(WorkspaceService, {
    async createWorkspace({ name }, context) {
      // A token of one workspace makes no other.
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const { createdAt, ...workspace } = await workspaces.createWorkspace(name)
      return { workspace: { ...workspace, createdAt: timestampFromDate(createdAt) } }
    },

    async getWorkspace({ workspaceId }, context) {
      const { createdAt, ...workspace } = await workspaces.findWorkspace(requiredWorkspace(context, workspaceId))
      return { workspace: { ...workspace, createdAt: timestampFromDate(createdAt) } }
    },

    async listWorkspaces({ limit, afterWorkspaceId }, context) {
      // A token of one workspace is shown no other: GetWorkspace tells of its own.
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const found = await workspaces.listWorkspaces(afterWorkspaceId, limit)
      return {
        workspaces: found.map(({ createdAt, ...rest }) => ({ ...rest, createdAt: timestampFromDate(createdAt) })),
      }
    },

    async listConnections({ workspaceId }, context) {
      const connections = await workspaces.listConnections(requiredWorkspace(context, workspaceId))
      return { connections: connections.map(toConnection) }
    },

    async createConnection({ workspaceId, name }, context) {
      return {
        connection: toConnection(await workspaces.createConnection(workspaceId, name, callerOf(context).workspaceId)),
      }
    },

    async setConnectionStatus({ connectionId, status }, context) {
      const names = {
        [ConnectionStatus.ENABLED]: 'enabled',
        [ConnectionStatus.DISABLED]: 'disabled',
        [ConnectionStatus.UNSPECIFIED]: undefined,
      } as const
      const named = names[status]
      if (!named) throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/status', rule: 'enum' }] })
      return {
        connection: toConnection(
          await workspaces.setConnectionStatus(connectionId, named, callerOf(context).workspaceId),
        ),
      }
    },

    async createInstallation({ connectionId, ...settings }, context) {
      const { installation, identitySecret } = await workspaces.createInstallation(
        connectionId,
        fromSettings(settings),
        callerOf(context).workspaceId,
      )
      return { installation: toInstallation(installation), identitySecret }
    },

    async updateInstallation({ siteKey, ...settings }, context) {
      const installation = await workspaces.updateInstallation(
        siteKey,
        fromSettings(settings),
        callerOf(context).workspaceId,
      )
      return { installation: toInstallation(installation) }
    },

    async listInstallations({ workspaceId }, context) {
      const workspace = requiredWorkspace(context, workspaceId)
      return { installations: (await workspaces.listInstallations(workspace)).map(toInstallation) }
    },

    async rotateIdentitySecret({ siteKey }, context) {
      return { identitySecret: await workspaces.rotateIdentitySecret(siteKey, callerOf(context).workspaceId) }
    },
  })
}

interface SettingsMessage {
  enabled?: boolean
  origins: string[]
  appearance?: AppearanceMessage
  capabilities?: CapabilitiesMessage
  defaultLocale?: string
  forms?: FormsMessage
}

function fromSettings({
  enabled,
  origins,
  appearance,
  capabilities,
  defaultLocale,
  forms,
}: SettingsMessage): InstallationSettings {
  return {
    ...(enabled === undefined ? {} : { enabled }),
    ...(origins.length === 0 ? {} : { origins }),
    ...(appearance && { appearance: fromAppearance(appearance) }),
    ...(capabilities && { capabilities: fromCapabilities(capabilities) }),
    ...(defaultLocale === undefined ? {} : { defaultLocale }),
    ...(forms && { forms: fromForms(forms) }),
  }
}

/** A text that is left empty stays as it was. */
function fromAppearance({ title, greeting, accentColor, position, logoUrl }: AppearanceMessage): Partial<Appearance> {
  return {
    ...(title && { title }),
    ...(greeting && { greeting }),
    ...(accentColor && { accentColor }),
    ...(position && { position: position as Appearance['position'] }),
    ...(logoUrl && { logoUrl }),
  }
}

function fromCapabilities(message: CapabilitiesMessage): Partial<Capabilities> {
  return Object.fromEntries(
    capabilityNames.flatMap((name) => (message[name] === undefined ? [] : [[name, message[name]]])),
  )
}

function toConnection({
  connectionId,
  workspaceId,
  name,
  status,
}: Connection): MessageInitShape<typeof ConnectionSchema> {
  return {
    connectionId,
    workspaceId,
    name,
    status: status === 'enabled' ? ConnectionStatus.ENABLED : ConnectionStatus.DISABLED,
  }
}

function toInstallation({
  identitySecrets,
  forms,
  ...installation
}: Installation): MessageInitShape<typeof InstallationSchema> {
  return { ...installation, forms: toForms(forms ?? {}), identityKeyIds: identitySecrets.map(({ kid }) => kid) }
}
