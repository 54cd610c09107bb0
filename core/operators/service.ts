import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import { type ConsoleSessions, createConsoleSessions } from './console-sessions.ts'

export interface OperatorService {
  consoleSessions: ConsoleSessions
}

export function createOperatorService(
  { bus, now }: CoreKit,
  { workspaces, consoleSessions: store }: { workspaces: WorkspaceStore; consoleSessions: ConsoleSessionStore },
  { wakeups }: LogService,
  { workspaceSessions }: WorkspaceService,
): OperatorService {
  const consoleSessions = createConsoleSessions({
    store,
    hasWorkspace: async (workspaceId) => (await workspaces.findWorkspace(workspaceId)) !== undefined,
    workspaceSessions,
    wakeups,
    bus,
    now,
  })
  return { consoleSessions }
}
