import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { command, type Group } from '../command.ts'
import { oneOf, UsageError } from '../usage.ts'
import { deletion } from './deletion.ts'
import { pageFlags } from './destination-flags.ts'
import { installationPolicies } from './installation-policies.ts'
import { retention } from './retention.ts'
import { workspace } from './workspace-flag.ts'

const connection = { type: 'string', required: true, description: 'the connection’s id' } as const
const siteKey = { type: 'string', required: true, description: 'the public site key' } as const
const name = { type: 'string', required: true, description: '1 to 128 characters' } as const
const origin = { type: 'string', multiple: true, description: 'an allowed origin; repeatable' } as const
const locale = { type: 'string', description: 'fallback if the visitor’s language is not supported' } as const

export const workspaces: Group = {
  create: command({
    summary: 'Create a workspace',
    flags: { name },
    run: ({ workspaces }, { name }) => workspaces.createWorkspace({ name }),
  }),
  list: command({
    summary: 'List all workspaces by id',
    flags: {
      limit: { type: 'string', description: 'page size; default 100' },
      after: { type: 'string', description: 'last id of the previous page' },
    },
    run: ({ workspaces }, { limit, after = '' }) =>
      workspaces.listWorkspaces({ afterWorkspaceId: after, limit: limit === undefined ? undefined : Number(limit) }),
  }),
  changes: command({
    summary: 'List who changed which policy, newest first',
    flags: {
      workspace,
      target: { type: 'string', description: 'only changes of this site key, connection or session' },
      page: { type: 'string', description: 'token of the next page' },
    },
    run: ({ workspaces }, { workspace: workspaceId, target = '', page: pageToken = '' }) =>
      workspaces.listPolicyChanges({ workspaceId, target, pageToken }),
  }),
  show: command({
    summary: 'Show a workspace',
    flags: { workspace },
    run: ({ workspaces }, { workspace }) => workspaces.getWorkspace({ workspaceId: workspace }),
  }),
  rename: command({
    summary: 'Rename a workspace',
    flags: { workspace, name },
    run: ({ workspaces }, { workspace, name }) => workspaces.updateWorkspace({ workspaceId: workspace, name }),
  }),
  retention,
  delete: deletion({
    what: 'a workspace with everything in it',
    flags: { workspace },
    run: ({ workspaces }, { workspace }) => workspaces.deleteWorkspace({ workspaceId: workspace }),
  }),
  restore: command({
    summary: 'Undo the deletion of a workspace, for about two minutes until the removal begins',
    flags: { workspace: { ...workspace, description: 'the workspace’s id' } },
    run: ({ workspaces }, { workspace }) => workspaces.restoreWorkspace({ workspaceId: workspace }),
  }),
}

export const tokens: Group = {
  list: command({
    summary: 'List tokens, the last used or revoked first, without their secrets',
    flags: { workspace: { type: 'string', description: 'only tokens of this workspace' }, ...pageFlags },
    run: ({ workspaces }, { workspace: workspaceId, limit, page = '' }) =>
      workspaces.listTokens({ workspaceId, limit: limit === undefined ? undefined : Number(limit), pageToken: page }),
  }),
  revoke: command({
    summary: 'Revoke a token for good, with the links and sessions of the console that it made',
    flags: {
      token: { type: 'string', required: true, description: 'the token’s id, tok_…', field: 'tokenId' },
      yes: { type: 'boolean', description: 'required, because it cannot be undone' },
    },
    async run({ workspaces }, { token, yes = false }) {
      if (!yes) throw new UsageError('a revocation cannot be undone; confirm with --yes')
      await workspaces.revokeToken({ tokenId: token })
      return { revoked: true }
    },
  }),
}

export const connections: Group = {
  create: command({
    summary: 'Create a connection in a workspace',
    flags: { workspace, name },
    run: ({ workspaces }, { workspace, name }) => workspaces.createConnection({ workspaceId: workspace, name }),
  }),
  list: command({
    summary: 'List the connections of a workspace',
    flags: { workspace },
    run: ({ workspaces }, { workspace }) => workspaces.listConnections({ workspaceId: workspace }),
  }),
  status: command({
    summary: 'Enable a connection, or disable it and end all its sessions',
    flags: { connection, status: { type: 'string', required: true, description: 'enabled or disabled' } },
    run: async ({ workspaces }, { connection, status }) => {
      const named = oneOf('status', status, {
        enabled: ConnectionStatus.ENABLED,
        disabled: ConnectionStatus.DISABLED,
      })
      return workspaces.setConnectionStatus({ connectionId: connection, status: named })
    },
  }),
  delete: deletion({
    what: 'a connection with its installations and conversations',
    flags: { connection },
    run: ({ workspaces }, { connection }) => workspaces.deleteConnection({ connectionId: connection }),
  }),
}

export const installations: Group = {
  ...installationPolicies,
  create: command({
    summary: 'Create an installation of the widget; its identity secret is shown only now',
    flags: { connection, origin: { ...origin, required: true }, locale },
    run: ({ workspaces }, { connection, origin, locale }) =>
      workspaces.createInstallation({ connectionId: connection, origins: origin, defaultLocale: locale }),
  }),
  list: command({
    summary: 'List the installations of a workspace',
    flags: { workspace },
    run: ({ workspaces }, { workspace }) => workspaces.listInstallations({ workspaceId: workspace }),
  }),
  update: command({
    summary: 'Change an installation; given origins replace the present ones',
    flags: { 'site-key': siteKey, origin, locale, status: { type: 'string', description: 'enabled or disabled' } },
    run: ({ workspaces }, { 'site-key': siteKey, origin = [], locale, status }) =>
      workspaces.updateInstallation({
        siteKey,
        origins: origin,
        defaultLocale: locale,
        enabled: status === undefined ? undefined : oneOf('status', status, { enabled: true, disabled: false }),
      }),
  }),
  consent: command({
    summary: 'Set the consent policy of an installation; a new version asks every visitor again',
    flags: {
      'site-key': siteKey,
      required: {
        type: 'string',
        required: true,
        description: 'yes or no: whether visitors must agree before they write',
      },
      url: { type: 'string', description: 'https URL of the policy' },
      version: { type: 'string', description: 'version of the policy, 1 to 64 characters' },
    },
    run: async ({ workspaces }, { 'site-key': siteKey, required, url, version }) => {
      const consent = {
        required: oneOf('required', required, { yes: true, no: false }),
        policyUrl: url,
        policyVersion: version,
      }
      return workspaces.updateInstallation({ siteKey, consent })
    },
  }),
  delete: deletion({
    what: 'an installation with its sessions and conversations',
    flags: { 'site-key': siteKey },
    run: ({ workspaces }, { 'site-key': siteKey }) => workspaces.deleteInstallation({ siteKey }),
  }),
}

export const identitySecrets: Group = {
  rotate: command({
    summary: 'Create a new identity secret, shown only now; the previous one stays valid until the next rotation',
    flags: {
      'site-key': siteKey,
      overlap: {
        type: 'string',
        description: 'seconds that replaced secrets stay valid; default 24 hours',
      },
    },
    run: ({ workspaces }, { 'site-key': siteKey, overlap }) =>
      workspaces.rotateIdentitySecret({ siteKey, overlapSeconds: overlap === undefined ? undefined : Number(overlap) }),
  }),
}
