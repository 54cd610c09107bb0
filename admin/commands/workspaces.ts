import { timestampDate } from '@bufbuild/protobuf/wkt'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { choice, command, type Group, many, must, number, text, UsageError, whether } from '../command.ts'
import { deletion, page, workspace, yes } from './flags.ts'

const connection = must(text('the connection’s id', 'connectionId'))
const name = must(text('1 to 128 characters'))

const period = (what: string) => ({ ...text(`${what}: days, forever or default`), read: readPeriod })

function readPeriod(given: string) {
  if (given === 'default') return {}
  if (given === 'forever') return { period: { case: 'forever' as const, value: true } }
  if (!/^\d{1,9}$/.test(given)) throw new UsageError(`a period is a number of days, forever or default, not "${given}"`)
  return { period: { case: 'days' as const, value: Number(given) } }
}

export const workspaces: Group = {
  create: command({
    summary: 'Create a workspace',
    flags: { name },
    run: ({ workspaces }, given) => workspaces.createWorkspace(given),
  }),
  list: command({
    summary: 'List all workspaces by id',
    flags: {
      limit: number('page size; default 100'),
      after: text('last id of the previous page', 'afterWorkspaceId'),
    },
    run: ({ workspaces }, given) => workspaces.listWorkspaces(given),
  }),
  changes: command({
    summary: 'List who changed which policy, newest first',
    flags: { workspace, target: text('only changes of this site key, connection or session'), page },
    run: ({ workspaces }, given) => workspaces.listPolicyChanges(given),
  }),
  show: command({
    summary: 'Show a workspace',
    flags: { workspace },
    run: ({ workspaces }, given) => workspaces.getWorkspace(given),
  }),
  rename: command({
    summary: 'Rename a workspace',
    flags: { workspace, name },
    run: ({ workspaces }, given) => workspaces.updateWorkspace(given),
  }),
  retention: command({
    summary: 'Set how long data of a workspace is kept; older data is removed for good',
    flags: {
      workspace,
      conversations: period('after the last message'),
      leads: period('after the capture'),
      'empty-sessions': period('sessions without a message, after their end'),
      audit: period('audit entries'),
      'held-deliveries': period('deliveries of disabled subscriptions'),
    },
    run: ({ workspaces }, { workspaceId, ...periods }) => {
      const given = Object.entries(periods).filter(([, period]) => period !== undefined)
      return workspaces.updateWorkspace({ workspaceId, retention: Object.fromEntries(given) })
    },
  }),
  delete: deletion('a workspace with everything in it', { workspace }, ({ workspaces }, given) =>
    workspaces.deleteWorkspace(given),
  ),
  restore: command({
    summary: 'Undo the deletion of a workspace, for about two minutes until the removal begins',
    flags: { workspace: { ...workspace, description: 'the workspace’s id' } },
    run: ({ workspaces }, given) => workspaces.restoreWorkspace(given),
  }),
}

export const tokens: Group = {
  list: command({
    summary: 'List tokens, the last used or revoked first, without their secrets',
    flags: {
      workspace: text('only tokens of this workspace', 'workspaceId'),
      limit: number('1 to 100; default 100'),
      page,
    },
    run: ({ workspaces }, given) => workspaces.listTokens(given),
  }),
  revoke: command({
    summary: 'Revoke a token for good, with the links and sessions of the console that it made',
    flags: { token: must(text('the token’s id, tok_…', 'tokenId')), yes },
    async run({ workspaces }, { tokenId, yes }) {
      if (!yes) throw new UsageError('a revocation cannot be undone; confirm with --yes')
      await workspaces.revokeToken({ tokenId })
      return { revoked: true }
    },
  }),
}

export const connections: Group = {
  create: command({
    summary: 'Create a connection in a workspace',
    flags: { workspace, name },
    run: ({ workspaces }, given) => workspaces.createConnection(given),
  }),
  list: command({
    summary: 'List the connections of a workspace',
    flags: { workspace },
    run: ({ workspaces }, given) => workspaces.listConnections(given),
  }),
  status: command({
    summary: 'Enable a connection, or disable it and end all its sessions',
    flags: {
      connection,
      status: must(
        choice({ enabled: ConnectionStatus.ENABLED, disabled: ConnectionStatus.DISABLED })('enabled or disabled'),
      ),
    },
    run: ({ workspaces }, given) => workspaces.setConnectionStatus(given),
  }),
  delete: deletion('a connection with its installations and conversations', { connection }, ({ workspaces }, given) =>
    workspaces.deleteConnection(given),
  ),
}

export const consoleLink = command({
  summary: 'Create a link that signs one operator in to the console, once, within ten minutes',
  flags: {
    gateway: text('URL of the gateway; default: of the service on this machine'),
    workspace: text('the workspace’s id; default: from the token, or of the service on this machine', 'workspaceId'),
    operator: text('id of the operator in records; default: the subject of the token'),
    owner: whether('for the first owner of the workspace, who then invites the others'),
    scope: many(text('a scope, repeatable; default: all of the token’s', 'scopes')),
  },
  async run({ console }, { gateway, workspaceId, ...given }, demo) {
    const url = gateway ?? demo.gatewayUrl
    if (url === undefined) throw new UsageError('missing: --gateway')
    const answer = await console.createSignInLink({ workspaceId: workspaceId ?? demo.workspaceId, ...given })
    // The secret is in the fragment, which browsers do not send to a server.
    const link = new URL(`/console/#sign-in=${answer.secret}`, url).href
    return { link, expiresAt: timestampDate(answer.expiresAt!).toISOString() }
  },
})
