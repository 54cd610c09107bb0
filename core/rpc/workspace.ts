import { create } from '@bufbuild/protobuf'
import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  ConnectionSchema,
  ConnectionStatus,
  PolicyChangeSchema,
  type Retention,
  RetentionSchema,
  TokenSchema,
  WorkspaceSchema,
  WorkspaceService,
} from '#proto/workspace/v1/workspace_pb.js'
import type { Core } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { setLogo } from '../pictures/pictures.ts'
import { undoDeletion } from '../privacy/deletions.ts'
import { issueIf, validate } from '../rules.ts'
import { callerOf, operatorWrites, requiredWorkspace, workspaceOf } from '../transport/caller.ts'
import { type Connection, retentionKinds, type Workspace, type WorkspaceSettings } from '../workspaces/model.ts'
import { listPolicyChanges } from '../workspaces/policy-changes.ts'
import { retentionOf } from '../workspaces/retention.ts'
import type { TokenDocument } from '../workspaces/tokens.ts'
import { listTokens, revokeToken } from '../workspaces/tokens.ts'
import {
  createConnection,
  createInstallation,
  createWorkspace,
  findConnection,
  findInstallation,
  findWorkspace,
  listConnections,
  listInstallations,
  listWorkspaces,
  plannedSiteKey,
  rotateIdentitySecret,
  setConnectionStatus,
  shownIdentitySecret,
  updateInstallation,
  updateWorkspace,
} from '../workspaces/workspaces.ts'
import { fromSettings, toInstallation } from './installations.ts'
import { auditedWrites, operatorDeletion } from './policy-changes.ts'
import { nameOf, toProto } from './proto-values.ts'
import { suppressionCalls } from './suppressions.ts'

export function workspaceService(router: ConnectRouter, core: Core) {
  const once = operatorWrites(core)
  const audited = auditedWrites(core)
  const deletion = operatorDeletion(core)

  const toWorkspace = (workspace: Workspace) =>
    toProto(WorkspaceSchema, { ...workspace, retention: toRetention(core, workspace) })

  router.service(WorkspaceService, {
    ...suppressionCalls(core),

    async listPolicyChanges(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const { changes, nextPageToken } = await listPolicyChanges(core, { ...request, workspaceId })
      const shown = changes.map((change) => toProto(PolicyChangeSchema, { ...change, confirmed: change.isConfirmed }))
      return { changes: shown, nextPageToken }
    },

    async createWorkspace(request, context) {
      // A token limited to one workspace cannot create workspaces.
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const { workspaceId } = await once(context, request, async (operation) => ({
        workspaceId: (await createWorkspace(core, request.name, operation)).workspaceId,
      }))
      return { workspace: toWorkspace(await findWorkspace(core, workspaceId)) }
    },

    async getWorkspace({ workspaceId }, context) {
      return { workspace: toWorkspace(await findWorkspace(core, requiredWorkspace(context, workspaceId))) }
    },

    async listWorkspaces({ limit, afterWorkspaceId }, context) {
      // Limited tokens call GetWorkspace instead.
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      return { workspaces: (await listWorkspaces(core, afterWorkspaceId, limit)).map(toWorkspace) }
    },

    async updateWorkspace(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const settings = { name: request.name, retention: request.retention && fromRetention(request.retention) }
      await audited(context, request, { workspaceId, target: workspaceId }, async (operation) => {
        await updateWorkspace(core, workspaceId, settings, operation)
        return { workspaceId }
      })
      return { workspace: toWorkspace(await findWorkspace(core, workspaceId)) }
    },

    async deleteWorkspace(request, context) {
      // Must name the workspace, because the deletion can be undone only for a short time.
      const workspaceId = request.workspaceId ?? ''
      if (workspaceId === '') throw invalid('/workspaceId', 'required')
      return deletion(context, request, 'workspace', requiredWorkspace(context, workspaceId))
    },

    async restoreWorkspace(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      await audited(context, request, { workspaceId, target: workspaceId }, async () => {
        await undoDeletion(core, workspaceId, callerOf(context).workspaceId)
        await findWorkspace(core, workspaceId)
        return {}
      })
      return { workspace: toWorkspace(await findWorkspace(core, workspaceId)) }
    },

    async listTokens({ workspaceId: named, limit, pageToken }, context) {
      const workspaceId = workspaceOf(context, named)
      const { page, nextPageToken } = await listTokens(core, { workspaceId, limit, pageToken })
      return { tokens: page.map(toToken), nextPageToken }
    },

    async revokeToken({ tokenId }, context) {
      await revokeToken(core, tokenId, callerOf(context))
      return {}
    },

    deleteConnection: (request, context) => deletion(context, request, 'connection', request.connectionId),

    deleteInstallation: (request, context) => deletion(context, request, 'installation', request.siteKey),

    async listConnections({ workspaceId }, context) {
      const connections = await listConnections(core, requiredWorkspace(context, workspaceId))
      return { connections: connections.map(toConnection) }
    },

    async createConnection(request, context) {
      const scope = callerOf(context).workspaceId
      const { connectionId } = await once(context, request, async (operation) => ({
        connectionId: (await createConnection(core, request.workspaceId, request.name, scope, operation)).connectionId,
      }))
      return { connection: toConnection(await findConnection(core, connectionId, scope)) }
    },

    async setConnectionStatus(request, context) {
      const { connectionId, status } = request
      const named = nameOf(ConnectionStatus, status)
      if (!named) throw invalid('/status', 'enum')
      const scope = callerOf(context).workspaceId
      const { workspaceId } = await findConnection(core, connectionId, scope)
      await audited(context, request, { workspaceId, target: connectionId }, async (operation) => {
        await setConnectionStatus(core, connectionId, named, scope, operation)
        return { connectionId }
      })
      return { connection: toConnection(await findConnection(core, connectionId, scope)) }
    },

    async createInstallation(request, context) {
      const { connectionId } = request
      const scope = callerOf(context).workspaceId
      const { workspaceId } = await findConnection(core, connectionId, scope)
      const target = (operation: string) => plannedSiteKey(core, operation)
      const { publicSiteKey, kid } = await audited(context, request, { workspaceId, target }, async (operation) => {
        const made = await createInstallation(core, connectionId, fromSettings(request), scope, operation)
        return { publicSiteKey: made.installation.publicSiteKey, kid: made.identitySecret.kid }
      })
      const installation = await findInstallation(core, publicSiteKey, scope)
      return {
        installation: toInstallation(installation),
        identitySecret: shownIdentitySecret(core, installation, kid),
      }
    },

    async updateInstallation(request, context) {
      const { siteKey } = request
      const scope = callerOf(context).workspaceId
      const { workspaceId } = await findInstallation(core, siteKey, scope)
      await audited(context, request, { workspaceId, target: siteKey }, async (operation) => {
        await updateInstallation(core, siteKey, fromSettings(request), scope, operation)
        return { publicSiteKey: siteKey }
      })
      return { installation: toInstallation(await findInstallation(core, siteKey, scope)) }
    },

    async setLogo(request, context) {
      const { siteKey, image, gatewayOrigin } = request
      const scope = callerOf(context).workspaceId
      const { workspaceId } = await findInstallation(core, siteKey, scope)
      const settings = [{ name: 'appearance.logo', value: image.length > 0 ? `${image.length} bytes` : 'none' }]
      await audited(context, request, { workspaceId, target: siteKey, settings }, async (operation) => {
        await setLogo(core, siteKey, { workspaceId, image, gatewayOrigin }, async (logoUrl) => {
          const changed = await updateInstallation(core, siteKey, { appearance: { logoUrl } }, scope, operation)
          return changed.appearance.logoUrl
        })
        return { publicSiteKey: siteKey }
      })
      return { installation: toInstallation(await findInstallation(core, siteKey, scope)) }
    },

    async listInstallations({ workspaceId }, context) {
      const workspace = requiredWorkspace(context, workspaceId)
      return { installations: (await listInstallations(core, workspace)).map(toInstallation) }
    },

    async rotateIdentitySecret(request, context) {
      const { siteKey, overlapSeconds } = request
      const scope = callerOf(context).workspaceId
      const { workspaceId } = await findInstallation(core, siteKey, scope)
      const { kid } = await audited(context, request, { workspaceId, target: siteKey }, async (operation) => ({
        kid: (await rotateIdentitySecret(core, siteKey, scope, { operation, overlapSeconds })).kid,
      }))
      return { identitySecret: shownIdentitySecret(core, await findInstallation(core, siteKey, scope), kid) }
    },
  })
}

const toConnection = (connection: Connection) => toProto(ConnectionSchema, connection)

const toToken = ({ _id: tokenId, ...token }: TokenDocument) => toProto(TokenSchema, { ...token, tokenId })

/** Errors: `ValidationFailed` for a period below a day. */
function fromRetention(message: Retention): WorkspaceSettings['retention'] {
  return Object.fromEntries(
    retentionKinds.flatMap((kind) => {
      const period = message[kind]?.period
      if (message[kind] === undefined) return []
      if (period?.case === 'forever') validate(issueIf(!period.value, `/retention/${kind}/forever`, 'const'))
      // 0 days are rejected, because the stored value 0 means no limit.
      if (period?.case === 'days') validate(issueIf(period.value <= 0, `/retention/${kind}/days`, 'minimum'))
      return [[kind, period?.case === 'days' ? period.value : period?.case === 'forever' ? 0 : null]]
    }),
  )
}

function toRetention(core: Core, workspace: Workspace) {
  const periods = retentionOf(core, workspace)
  const fields = retentionKinds.map((kind) => {
    const days = periods[kind]
    const period = days === 0 ? { case: 'forever' as const, value: true } : { case: 'days' as const, value: days }
    return [kind, { period, isDefault: workspace.retention?.[kind] === undefined }]
  })
  return create(RetentionSchema, Object.fromEntries(fields))
}
