import type { Core } from '../core.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { PolicyChangeStore } from './policy-change-store.ts'
import { createPolicyChanges } from './policy-changes.ts'
import { createRetentionOf } from './retention.ts'
import { tokensOf } from './tokens.ts'
import { createWorkspaceSessions } from './workspace-sessions.ts'
import type { WorkspaceStore } from './workspace-store.ts'
import { createWorkspaces, siteDirectoryOf } from './workspaces.ts'

/** Time limit in milliseconds for loading the key set of workspace sessions. */
const jwksTimeoutMs = 3_000
/** Time in milliseconds for which the key set is cached. */
const jwksFreshMs = 600_000

export function createWorkspaceService(
  kit: Core,
  {
    workspaces: store,
    policyChanges,
  }: {
    workspaces: WorkspaceStore
    policyChanges: PolicyChangeStore
  },
  { wakeups }: WakeupService,
  workspaceSessionSecrets: Uint8Array[],
) {
  const { config, bus, secretBox, plannedIds, now } = kit
  const siteDirectory = siteDirectoryOf(kit)
  return {
    siteDirectory,
    tokens: tokensOf(kit),
    policyChanges: createPolicyChanges({ store: policyChanges, plannedIds, now }),
    retentionOf: createRetentionOf(config),
    workspaces: createWorkspaces({ store, directory: siteDirectory, secretBox, plannedIds, wakeups, bus, now }),
    workspaceSessions: createWorkspaceSessions(
      {
        secrets: workspaceSessionSecrets,
        jwksUrl: config.WORKSPACE_SESSION_JWKS_URL || undefined,
        jwksTimeoutMs,
        jwksFreshMs,
        issuer: config.WORKSPACE_SESSION_ISSUER || undefined,
      },
      now,
    ),
  }
}

export type WorkspaceService = ReturnType<typeof createWorkspaceService>
