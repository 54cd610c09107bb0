import { toJson } from '@bufbuild/protobuf'
import {
  ConnectionStatus,
  CreateConnectionResponseSchema,
  CreateInstallationResponseSchema,
  CreateWorkspaceResponseSchema,
  GetWorkspaceResponseSchema,
  ListConnectionsResponseSchema,
  ListInstallationsResponseSchema,
  ListWorkspacesResponseSchema,
  RotateIdentitySecretResponseSchema,
  SetConnectionStatusResponseSchema,
  UpdateInstallationResponseSchema,
} from '#proto/workspace/v1/workspace_pb.js'
import { command, type Group } from '../command.ts'
import { oneOf } from '../usage.ts'

const workspace = { type: 'string', required: true, description: 'the workspace’s id' } as const
const connection = { type: 'string', required: true, description: 'the connection’s id' } as const
const siteKey = { type: 'string', required: true, description: 'the public site key' } as const
const name = { type: 'string', required: true, description: '1 to 128 characters' } as const
const origin = { type: 'string', multiple: true, description: 'an allowed origin; may be given several times' } as const
const locale = { type: 'string', description: 'the language where the visitor’s is not spoken' } as const

export const workspaces: Group = {
  create: command({
    summary: 'Make a workspace',
    flags: { name },
    run: async ({ workspaces }, { name }) =>
      toJson(CreateWorkspaceResponseSchema, await workspaces.createWorkspace({ name })),
  }),
  list: command({
    summary: 'All workspaces, by id',
    flags: {
      limit: { type: 'string', description: 'how many, 100 where left out' },
      after: { type: 'string', description: 'the last id of the page before' },
    },
    run: async ({ workspaces }, { limit, after = '' }) =>
      toJson(
        ListWorkspacesResponseSchema,
        await workspaces.listWorkspaces({
          afterWorkspaceId: after,
          ...(limit === undefined ? {} : { limit: Number(limit) }),
        }),
      ),
  }),
  show: command({
    summary: 'One workspace',
    flags: { workspace },
    run: async ({ workspaces }, { workspace }) =>
      toJson(GetWorkspaceResponseSchema, await workspaces.getWorkspace({ workspaceId: workspace })),
  }),
}

export const connections: Group = {
  create: command({
    summary: 'Make a connection of a workspace',
    flags: { workspace, name },
    run: async ({ workspaces }, { workspace, name }) =>
      toJson(CreateConnectionResponseSchema, await workspaces.createConnection({ workspaceId: workspace, name })),
  }),
  list: command({
    summary: 'The connections of a workspace',
    flags: { workspace },
    run: async ({ workspaces }, { workspace }) =>
      toJson(ListConnectionsResponseSchema, await workspaces.listConnections({ workspaceId: workspace })),
  }),
  status: command({
    summary: 'Enable a connection, or disable it and end every session on it',
    flags: { connection, status: { type: 'string', required: true, description: 'enabled or disabled' } },
    run: async ({ workspaces }, { connection, status }) => {
      const named = oneOf('status', status, {
        enabled: ConnectionStatus.ENABLED,
        disabled: ConnectionStatus.DISABLED,
      })
      const answer = await workspaces.setConnectionStatus({ connectionId: connection, status: named })
      return toJson(SetConnectionStatusResponseSchema, answer)
    },
  }),
}

export const installations: Group = {
  create: command({
    summary: 'Make an installation of the widget; its identity secret is shown this once',
    flags: { connection, origin: { ...origin, required: true }, locale },
    run: async ({ workspaces }, { connection, origin, locale }) =>
      toJson(
        CreateInstallationResponseSchema,
        await workspaces.createInstallation({
          connectionId: connection,
          origins: origin,
          ...(locale === undefined ? {} : { defaultLocale: locale }),
        }),
      ),
  }),
  list: command({
    summary: 'The installations of a workspace',
    flags: { workspace },
    run: async ({ workspaces }, { workspace }) =>
      toJson(ListInstallationsResponseSchema, await workspaces.listInstallations({ workspaceId: workspace })),
  }),
  update: command({
    summary: 'Change an installation: origins that are given replace those that it has',
    flags: { 'site-key': siteKey, origin, locale, status: { type: 'string', description: 'enabled or disabled' } },
    run: async ({ workspaces }, { 'site-key': siteKey, origin = [], locale, status }) =>
      toJson(
        UpdateInstallationResponseSchema,
        await workspaces.updateInstallation({
          siteKey,
          origins: origin,
          ...(locale === undefined ? {} : { defaultLocale: locale }),
          ...(status === undefined ? {} : { enabled: oneOf('status', status, { enabled: true, disabled: false }) }),
        }),
      ),
  }),
}

export const identitySecrets: Group = {
  rotate: command({
    summary: 'A new identity secret, shown this once; the one before stays good until the next rotation',
    flags: {
      'site-key': siteKey,
      overlap: {
        type: 'string',
        description: 'seconds that earlier secrets stay good after they were replaced, 24 hours where left out',
      },
    },
    run: async ({ workspaces }, { 'site-key': siteKey, overlap }) =>
      toJson(
        RotateIdentitySecretResponseSchema,
        await workspaces.rotateIdentitySecret({
          siteKey,
          ...(overlap === undefined ? {} : { overlapSeconds: Number(overlap) }),
        }),
      ),
  }),
}
