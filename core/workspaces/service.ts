import { bound } from '../bound.ts'
import type { Core } from '../core.ts'
import { listPolicyChanges, recordPolicyChange } from './policy-changes.ts'
import { retentionOf } from './retention.ts'
import { listTokens, requireLiveToken, revokeToken, useToken } from './tokens.ts'
import { workspaceSessionsOf } from './workspace-sessions.ts'
import * as workspaces from './workspaces.ts'

const { siteDirectoryOf, ...functions } = workspaces

/** The rooms of workspaces as objects, for rooms that still take objects. */
export const createWorkspaceService = (core: Core) => ({
  tokens: bound(core, { requireLive: requireLiveToken, use: useToken, revoke: revokeToken, list: listTokens }),
  policyChanges: {
    record: <R>(operation: string, change: Parameters<typeof recordPolicyChange>[2], write: () => Promise<R>) =>
      recordPolicyChange(core, operation, change, write),
    ...bound(core, { list: listPolicyChanges }),
  },
  retentionOf: (workspace: Parameters<typeof retentionOf>[1]) => retentionOf(core, workspace),
  workspaces: { ...bound(core, functions), identitySecret: bound(core, functions).shownIdentitySecret },
  workspaceSessions: workspaceSessionsOf(core),
})

export type WorkspaceService = ReturnType<typeof createWorkspaceService>
export type Tokens = WorkspaceService['tokens']
export type Workspaces = WorkspaceService['workspaces']
