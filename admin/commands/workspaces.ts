import { timestampDate } from '@bufbuild/protobuf/wkt'
import { ConnectionStatus, WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { call, choice, command, type Group, many, must, number, text, UsageError, whether } from '../command.ts'
import { deletion, page, workspace, yes } from './flags.ts'

const rpc = WorkspaceService.method

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
  create: call(rpc.createWorkspace, { name }),
  list: call(rpc.listWorkspaces, {
    limit: number('page size; default 100'),
    after: text('last id of the previous page', 'afterWorkspaceId'),
  }),
  changes: call(rpc.listPolicyChanges, {
    workspace,
    target: text('only changes of this site key, connection or session'),
    page,
  }),
  show: call(rpc.getWorkspace, { workspace }),
  rename: call(rpc.updateWorkspace, { workspace, name }),
  retention: command(
    {
      workspace,
      conversations: period('after the last message'),
      leads: period('after the capture'),
      'empty-sessions': period('sessions without a message, after their end'),
      audit: period('audit entries'),
      'held-deliveries': period('deliveries of disabled subscriptions'),
    },
    ({ workspaces }, { workspaceId, ...periods }) => {
      const given = Object.entries(periods).filter(([, period]) => period !== undefined)
      return workspaces.updateWorkspace({ workspaceId, retention: Object.fromEntries(given) })
    },
  ),
  delete: deletion(rpc.deleteWorkspace, { workspace }),
  restore: call(rpc.restoreWorkspace, { workspace: { ...workspace, description: 'the workspace’s id' } }),
}

export const tokens: Group = {
  list: call(rpc.listTokens, {
    workspace: text('only tokens of this workspace', 'workspaceId'),
    limit: number('1 to 100; default 100'),
    page,
  }),
  revoke: command(
    { token: must(text('the token’s id, tok_…', 'tokenId')), yes },
    async ({ workspaces }, { tokenId, yes }) => {
      if (!yes) throw new UsageError('a revocation cannot be undone; confirm with --yes')
      await workspaces.revokeToken({ tokenId })
      return { revoked: true }
    },
  ),
}

export const connections: Group = {
  create: call(rpc.createConnection, { workspace, name }),
  list: call(rpc.listConnections, { workspace }),
  status: call(rpc.setConnectionStatus, {
    connection,
    status: must(
      choice({ enabled: ConnectionStatus.ENABLED, disabled: ConnectionStatus.DISABLED })('enabled or disabled'),
    ),
  }),
  delete: deletion(rpc.deleteConnection, { connection }),
}

export const consoleLink = command(
  {
    gateway: text('URL of the gateway; default: of the service on this machine'),
    workspace: text('the workspace’s id; default: from the token, or of the service on this machine', 'workspaceId'),
    operator: text('id of the operator in records; default: the subject of the token'),
    owner: whether('for the first owner of the workspace, who then invites the others'),
    scope: many(text('a scope, repeatable; default: all of the token’s', 'scopes')),
  },
  async ({ console }, { gateway, workspaceId, ...given }, demo) => {
    const url = gateway ?? demo.gatewayUrl
    if (url === undefined) throw new UsageError('missing: --gateway')
    const answer = await console.createSignInLink({ workspaceId: workspaceId ?? demo.workspaceId, ...given })
    // The secret is in the fragment, which browsers do not send to a server.
    const link = new URL(`/console/#sign-in=${answer.secret}`, url).href
    return { link, expiresAt: timestampDate(answer.expiresAt!).toISOString() }
  },
)
