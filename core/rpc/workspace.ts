import { create, type Message } from '@bufbuild/protobuf'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import {
  ConnectionSchema,
  ConnectionStatus,
  type SuppressionEntry as EntryMessage,
  LastBackupsSchema,
  PolicyChangeSchema,
  type Retention,
  RetentionSchema,
  SuppressionSchema,
  TokenSchema,
  WorkspaceSchema,
  WorkspaceService,
} from '#proto/workspace/v1/workspace_pb.js'
import type { Core } from '../core.ts'
import { addSuppressions } from '../deliveries/suppressing.ts'
import { invalid, ServiceError } from '../errors.ts'
import { listSuppressions, removeSuppressions, type SuppressionEntry } from '../leads/suppressions.ts'
import { setLogo } from '../pictures/pictures.ts'
import { undoDeletion } from '../privacy/deletions.ts'
import { issueIf, validate } from '../rules.ts'
import { callerOf, callerWorkspace, operatorWrites, requiredWorkspace, workspaceOf } from '../transport/caller.ts'
import {
  type Connection,
  type PolicySetting,
  retentionKinds,
  type Workspace,
  type WorkspaceSettings,
} from '../workspaces/model.ts'
import { listPolicyChanges } from '../workspaces/policy-changes.ts'
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
  openIdentitySecret,
  retentionOf,
  rotateIdentitySecret,
  setConnectionStatus,
  updateInstallation,
  updateWorkspace,
} from '../workspaces/workspaces.ts'
import { fromSettings, toInstallation } from './installations.ts'
import { auditedWrites, entryCounts, operatorDeletion } from './policy-changes.ts'
import { emptyAfter, nameOf, toProto } from './proto-values.ts'

export function workspaceService(router: ConnectRouter, core: Core) {
  const once = operatorWrites(core)
  const audited = auditedWrites(core)
  const deletion = operatorDeletion(core)

  const toWorkspace = (workspace: Workspace) =>
    toProto(WorkspaceSchema, { ...workspace, retention: toRetention(core, workspace) })

  /** Changes an installation, which is recorded, and returns it with the result of the change. */
  async function changedInstallation<Result>(
    context: HandlerContext,
    request: Message & { siteKey: string },
    change: (operation: string, workspaceId: string) => Promise<Result>,
    settings?: PolicySetting[],
  ) {
    const { siteKey: target } = request
    const { workspaceId } = await findInstallation(core, target, callerWorkspace(context))
    const subject = { workspaceId, target, settings }
    const result = await audited(context, request, subject, (operation) => change(operation, workspaceId))
    return { ...result, installation: await findInstallation(core, target, callerWorkspace(context)) }
  }

  router.service(WorkspaceService, {
    addSuppressions(request, context) {
      const { entries, reason } = request
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const addedBy = callerOf(context).subject
      const subject = { workspaceId, settings: entryCounts(entries) }
      return audited(context, request, subject, () =>
        addSuppressions(core, { workspaceId, entries: entries.map(fromEntry), reason, addedBy }),
      )
    },

    removeSuppressions(request, context) {
      const { entries, suppressionIds } = request
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const subject = { workspaceId, settings: entryCounts(entries, suppressionIds) }
      return audited(context, request, subject, async () => ({
        removed: await removeSuppressions(core, { workspaceId, entries: entries.map(fromEntry), suppressionIds }),
      }))
    },

    async listSuppressions(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const entry = request.entry && fromEntry(request.entry)
      const { page, nextPageToken } = await listSuppressions(core, { ...request, workspaceId, entry })
      const suppressions = page.map(({ _id: suppressionId, ...each }) =>
        toProto(SuppressionSchema, { suppressionId, ...each }),
      )
      return { suppressions, nextPageToken }
    },

    async listPolicyChanges(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const { page, nextPageToken } = await listPolicyChanges(core, { ...request, workspaceId })
      const changes = page.map(({ _id: changeId, isConfirmed: confirmed, ...change }) =>
        toProto(PolicyChangeSchema, { changeId, confirmed, ...change }),
      )
      return { changes, nextPageToken }
    },

    async createWorkspace(request, context) {
      // A token limited to one workspace cannot create workspaces.
      if (callerWorkspace(context) !== undefined) throw new ServiceError('PermissionDenied')
      const { workspaceId } = await once(context, request, async (operation) => ({
        workspaceId: (await createWorkspace(core, request.name, operation)).workspaceId,
      }))
      return { workspace: toWorkspace(await findWorkspace(core, workspaceId)) }
    },

    async getWorkspace({ workspaceId }, context) {
      const workspace = toWorkspace(await findWorkspace(core, requiredWorkspace(context, workspaceId)))
      return { workspace, lastBackups: toProto(LastBackupsSchema, await core.database.lastBackups()) }
    },

    async listWorkspaces({ limit, afterWorkspaceId }, context) {
      // Limited tokens call GetWorkspace instead.
      if (callerWorkspace(context) !== undefined) throw new ServiceError('PermissionDenied')
      return { workspaces: (await listWorkspaces(core, afterWorkspaceId, limit)).map(toWorkspace) }
    },

    async updateWorkspace(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const settings = { name: request.name, retention: request.retention && fromRetention(request.retention) }
      await audited(context, request, { workspaceId }, (operation) =>
        updateWorkspace(core, workspaceId, settings, operation),
      )
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
      await audited(context, request, { workspaceId }, async () => {
        await undoDeletion(core, workspaceId, callerWorkspace(context))
        await findWorkspace(core, workspaceId)
      })
      return { workspace: toWorkspace(await findWorkspace(core, workspaceId)) }
    },

    async listTokens({ workspaceId: named, limit, pageToken }, context) {
      const workspaceId = workspaceOf(context, named)
      const { page, nextPageToken } = await listTokens(core, { workspaceId, limit, pageToken })
      const tokens = page.map(({ _id: tokenId, ...token }) => toProto(TokenSchema, { tokenId, ...token }))
      return { tokens, nextPageToken }
    },

    revokeToken: ({ tokenId }, context) => emptyAfter(revokeToken(core, tokenId, callerOf(context))),

    deleteConnection: (request, context) => deletion(context, request, 'connection', request.connectionId),

    deleteInstallation: (request, context) => deletion(context, request, 'installation', request.siteKey),

    async listConnections({ workspaceId }, context) {
      const connections = await listConnections(core, requiredWorkspace(context, workspaceId))
      return { connections: connections.map(toConnection) }
    },

    async createConnection(request, context) {
      const scope = callerWorkspace(context)
      const { connectionId } = await once(context, request, async (operation) => ({
        connectionId: (await createConnection(core, request.workspaceId, request.name, scope, operation)).connectionId,
      }))
      return { connection: toConnection(await findConnection(core, connectionId, scope)) }
    },

    async setConnectionStatus(request, context) {
      const { connectionId, status } = request
      const named = nameOf(ConnectionStatus, status)
      if (!named) throw invalid('/status', 'enum')
      const scope = callerWorkspace(context)
      const { workspaceId } = await findConnection(core, connectionId, scope)
      await audited(context, request, { workspaceId, target: connectionId }, (operation) =>
        setConnectionStatus(core, connectionId, named, scope, operation),
      )
      return { connection: toConnection(await findConnection(core, connectionId, scope)) }
    },

    async createInstallation(request, context) {
      const { connectionId } = request
      const scope = callerWorkspace(context)
      const { workspaceId } = await findConnection(core, connectionId, scope)
      const target = (operation: string) => core.plannedIds('pk', operation)
      const { publicSiteKey, kid } = await audited(context, request, { workspaceId, target }, async (operation) => {
        const made = await createInstallation(core, connectionId, fromSettings(request), scope, operation)
        return { publicSiteKey: made.installation.publicSiteKey, kid: made.identitySecret.kid }
      })
      const installation = await findInstallation(core, publicSiteKey, scope)
      return {
        installation: toInstallation(installation),
        identitySecret: openIdentitySecret(core, installation, kid),
      }
    },

    async updateInstallation(request, context) {
      const { siteKey } = request
      const { installation } = await changedInstallation(context, request, async (operation) => {
        await updateInstallation(core, siteKey, fromSettings(request), callerWorkspace(context), operation)
      })
      return { installation: toInstallation(installation) }
    },

    async setLogo(request, context) {
      const { siteKey, image, gatewayOrigin } = request
      const settings = [{ name: 'appearance.logo', value: image.length > 0 ? `${image.length} bytes` : 'none' }]
      const scope = callerWorkspace(context)
      const change = (operation: string, workspaceId: string) =>
        setLogo(core, siteKey, { workspaceId, image, gatewayOrigin }, async (logoUrl) => {
          const changed = await updateInstallation(core, siteKey, { appearance: { logoUrl } }, scope, operation)
          return changed.appearance.logoUrl
        })
      const { installation } = await changedInstallation(context, request, change, settings)
      return { installation: toInstallation(installation) }
    },

    async listInstallations({ workspaceId }, context) {
      const installations = await listInstallations(core, requiredWorkspace(context, workspaceId))
      return { installations: installations.map(toInstallation) }
    },

    async rotateIdentitySecret(request, context) {
      const { siteKey, overlapSeconds } = request
      const { kid, installation } = await changedInstallation(context, request, async (operation) => ({
        kid: (await rotateIdentitySecret(core, siteKey, callerWorkspace(context), { operation, overlapSeconds })).kid,
      }))
      return { identitySecret: openIdentitySecret(core, installation, kid) }
    },
  })
}

const toConnection = (connection: Connection) => toProto(ConnectionSchema, connection)

/** Converts the periods of a request. Errors: `ValidationFailed` for a period below a day. */
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

const fromEntry = ({ of }: EntryMessage): SuppressionEntry => ({ kind: of.case, value: of.value ?? '' })
