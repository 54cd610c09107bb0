import { createJob } from '../concurrency/job.ts'
import type { CoreConfig } from '../config.ts'
import type { Core } from '../core.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import { createAccounts } from './accounts.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import { createConsoleSessions } from './console-sessions.ts'
import { createIdentityProvider } from './identity-provider.ts'
import { createPasskeys } from './passkeys.ts'
import { parseRoles } from './provider-settings.ts'
import { createProviderSignIn } from './provider-sign-in.ts'
import type { TeamStore } from './team-store.ts'
import { createTeams } from './teams.ts'

const recheckEveryMs = 1_000

export function createOperatorService(
  { config, bus, secretBox, logger, now }: Core,
  {
    workspaces,
    consoleSessions: store,
    teams: teamStore,
  }: { workspaces: WorkspaceStore; consoleSessions: ConsoleSessionStore; teams: TeamStore },
  { wakeups }: { wakeups: Wakeups },
  { workspaceSessions, tokens }: WorkspaceService,
  mailer: Mailer,
) {
  const teams = createTeams({ store: teamStore, wakeups, bus, now })
  const consoleSessions = createConsoleSessions({
    store,
    teams,
    hasWorkspace: async (workspaceId) => (await workspaces.findWorkspace(workspaceId)) !== undefined,
    workspaceSessions,
    tokens,
    wakeups,
    bus,
    now,
  })
  const provider = config.OIDC_ISSUER === '' ? undefined : createIdentityProvider(providerSettings(config), now)
  const providerSignIn = createProviderSignIn({
    provider,
    store,
    teams,
    consoleSessions,
    secretBox,
    wakeups,
    logger,
    now,
  })
  const accounts = createAccounts({
    teams,
    teamStore,
    sessionStore: store,
    mailer,
    wakeups,
    publicUrl: config.PUBLIC_URL,
    nameOfWorkspace: async (workspaceId) => (await workspaces.findWorkspace(workspaceId))?.name ?? '',
    logger,
    now,
  })
  const passkeys = createPasskeys({
    store: teamStore,
    attempts: store,
    consoleSessions,
    publicUrl: config.PUBLIC_URL,
    now,
  })
  return {
    teams,
    accounts,
    passkeys,
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
