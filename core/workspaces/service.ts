import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import { createDirectory, type Directory } from './directory.ts'
import { createWorkspaceSessions, type WorkspaceSessions } from './workspace-sessions.ts'
import { createWorkspaces, type Workspaces } from './workspaces.ts'

/** Workspaces, installations and operators, and the cached authorization data. */
export interface WorkspaceService {
  workspaces: Workspaces
  workspaceSessions: WorkspaceSessions
  directory: Directory
}

export function createWorkspaceService(
  { config, stores, bus, secretBox, plannedIds, now }: CoreKit,
  { wakeups, workspaceSessionSecrets }: Pick<LogService, 'wakeups'> & { workspaceSessionSecrets: Uint8Array[] },
): WorkspaceService {
  const directory = createDirectory({
    sessionStore: stores.sessions,
    workspaceStore: stores.workspaces,
    conversationStore: stores.conversations,
    bus,
    isCurrent: wakeups.isCurrent,
  })
  return {
    directory,
    workspaces: createWorkspaces({ store: stores.workspaces, directory, secretBox, plannedIds, wakeups, now }),
    workspaceSessions: createWorkspaceSessions(
      {
        secrets: workspaceSessionSecrets,
        jwksUrl: config.WORKSPACE_SESSION_JWKS_URL || undefined,
        jwksTimeoutMs: config.WORKSPACE_SESSION_JWKS_TIMEOUT_MS,
        jwksFreshMs: config.WORKSPACE_SESSION_JWKS_FRESH_SECONDS * 1000,
        issuer: config.WORKSPACE_SESSION_ISSUER || undefined,
      },
      now,
    ),
  }
}
