import { createJob } from '../concurrency/job.ts'
import type { CoreConfig } from '../config.ts'
import type { CoreKit } from '../kit.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import { createConsoleSessions } from './console-sessions.ts'
import { createIdentityProvider } from './identity-provider.ts'
import { parseRoles } from './provider-settings.ts'
import { createProviderSignIn } from './provider-sign-in.ts'

const recheckEveryMs = 1_000

export function createOperatorService(
  { config, bus, secretBox, logger, now }: CoreKit,
  { workspaces, consoleSessions: store }: { workspaces: WorkspaceStore; consoleSessions: ConsoleSessionStore },
  { wakeups }: WakeupService,
  { workspaceSessions }: WorkspaceService,
) {
  const consoleSessions = createConsoleSessions({
    store,
    hasWorkspace: async (workspaceId) => (await workspaces.findWorkspace(workspaceId)) !== undefined,
    workspaceSessions,
    wakeups,
    bus,
    now,
  })
  const provider = config.OIDC_ISSUER === '' ? undefined : createIdentityProvider(providerSettings(config), now)
  const providerSignIn = createProviderSignIn({ provider, store, consoleSessions, secretBox, wakeups, logger, now })
  return {
    consoleSessions,
    providerSignIn,
    jobs: [createJob({ name: 'check of operators', everyMs: recheckEveryMs, run: providerSignIn.recheck, logger })],
  }
}

export type OperatorService = ReturnType<typeof createOperatorService>

const providerSettings = (config: CoreConfig) => ({
  issuer: config.OIDC_ISSUER,
  clientId: config.OIDC_CLIENT_ID,
  clientSecret: config.OIDC_CLIENT_SECRET,
  scope: config.OIDC_SCOPE,
  workspaceId: config.OIDC_WORKSPACE,
  workspaceClaim: config.OIDC_WORKSPACE_CLAIM,
  rolesClaim: config.OIDC_ROLES_CLAIM,
  roles: parseRoles(config.OIDC_ROLES, operatorScopes),
})
