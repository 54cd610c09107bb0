import { byKey } from '../../platform/concurrency/batcher.ts'
import type { Core } from '../core.ts'
import { announcedMaxAgeMs, createLiveCache } from '../wakeups/live-cache.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { PolicyChangeStore } from './policy-change-store.ts'
import { createPolicyChanges } from './policy-changes.ts'
import { createRetentionOf } from './retention.ts'
import type { TokenStore } from './token-store.ts'
import { createTokens } from './tokens.ts'
import { createWorkspaceSessions } from './workspace-sessions.ts'
import type { WorkspaceStore } from './workspace-store.ts'
import { createWorkspaces, type SiteDirectory } from './workspaces.ts'

/** Time limit in milliseconds for loading the key set of workspace sessions. */
const jwksTimeoutMs = 3_000
/** Time in milliseconds for which the key set is cached. */
const jwksFreshMs = 600_000

export function createWorkspaceService(
  kit: Core,
  {
    workspaces: store,
    policyChanges,
    tokens,
  }: {
    workspaces: WorkspaceStore
    policyChanges: PolicyChangeStore
    tokens: TokenStore
  },
  { wakeups }: WakeupService,
  workspaceSessionSecrets: Uint8Array[],
) {
  const { config, bus, secretBox, plannedIds, now } = kit
  const { isCurrent } = wakeups
  const siteDirectory: SiteDirectory = {
    connections: createLiveCache({
      bus,
      isCurrent,
      maxEntries: 10_000,
      maxAgeMs: announcedMaxAgeMs,
      loadMany: async (ids) => byKey(await store.findConnections(ids), ({ connectionId }) => connectionId),
    }),
    installations: createLiveCache({
      bus,
      isCurrent,
      maxEntries: 10_000,
      maxAgeMs: announcedMaxAgeMs,
      loadMany: async (keys) => byKey(await store.findInstallations(keys), ({ publicSiteKey }) => publicSiteKey),
    }),
  }
  return {
    siteDirectory,
    tokens: createTokens(kit, { store: tokens, wakeups }),
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
