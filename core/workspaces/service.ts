import { randomUUID } from 'node:crypto'
import { byKey } from '../../platform/concurrency/batcher.ts'
import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { StreamService } from '../streams/service.ts'
import { announcedMaxAgeMs, createLiveCache } from '../wakeups/live-cache.ts'
import type { WakeupService } from '../wakeups/service.ts'
import { type AvailabilityOf, createAvailabilityOf } from './availability.ts'
import { type AvailabilityWatch, createAvailabilityWatch } from './availability-watch.ts'
import { createOperatorPresence, type OperatorPresence } from './operator-presence.ts'
import type { OperatorPresenceStore } from './operator-presence-store.ts'
import type { PolicyChangeStore } from './policy-change-store.ts'
import { createPolicyChanges, type PolicyChanges } from './policy-changes.ts'
import { createRetentionOf, type RetentionOf } from './retention.ts'
import { createSavedReplies, type SavedReplies } from './saved-replies.ts'
import type { SavedReplyStore } from './saved-reply-store.ts'
import { createWorkspaceSessions, type WorkspaceSessions } from './workspace-sessions.ts'
import type { WorkspaceStore } from './workspace-store.ts'
import { createWorkspaces, type SiteDirectory, type Workspaces } from './workspaces.ts'

export interface WorkspaceService {
  workspaces: Workspaces
  policyChanges: PolicyChanges
  savedReplies: SavedReplies
  workspaceSessions: WorkspaceSessions
  siteDirectory: SiteDirectory
  operatorPresence: OperatorPresence
  availabilityOf: AvailabilityOf
  retentionOf: RetentionOf
  availabilityWatch: AvailabilityWatch
  jobs: Job[]
}

const availabilityEveryMs = 500
/**
 * Interval in milliseconds at which a core renews its lease in `operator-presence.ts`. The lease
 * is more than three times as long.
 */
const presenceEveryMs = 3_000

/** Time limit in milliseconds for loading the key set of workspace sessions. */
const jwksTimeoutMs = 3_000
/** Time in milliseconds for which the key set is cached. */
const jwksFreshMs = 600_000

export function createWorkspaceService(
  { config, bus, secretBox, plannedIds, logger, now }: CoreKit,
  {
    workspaces: store,
    operatorPresence,
    policyChanges,
    savedReplies,
  }: {
    savedReplies: SavedReplyStore
    workspaces: WorkspaceStore
    operatorPresence: OperatorPresenceStore
    policyChanges: PolicyChangeStore
  },
  { wakeups, streamSubscriptions }: StreamService & WakeupService,
  workspaceSessionSecrets: Uint8Array[],
): WorkspaceService {
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
  const presence = createOperatorPresence({
    store: operatorPresence,
    processId: randomUUID(),
    wakeups,
    bus,
    logger,
    now,
  })
  const availabilityOf = createAvailabilityOf({ presence, now })
  const availabilityWatch = createAvailabilityWatch({
    directory: siteDirectory,
    availabilityOf,
    subscriptions: streamSubscriptions,
    bus,
    logger,
    now,
  })
  return {
    siteDirectory,
    policyChanges: createPolicyChanges({ store: policyChanges, plannedIds, now }),
    savedReplies: createSavedReplies(savedReplies, config.MESSAGE_BODY_MAX_LENGTH),
    operatorPresence: presence,
    availabilityOf,
    retentionOf: createRetentionOf(config),
    availabilityWatch,
    jobs: [
      createJob({ name: 'check of availability', everyMs: availabilityEveryMs, run: availabilityWatch.check, logger }),
      createJob({ name: 'renewal of operator presence', everyMs: presenceEveryMs, run: presence.renew, logger }),
    ],
    workspaces: createWorkspaces({ store, directory: siteDirectory, secretBox, plannedIds, wakeups, now }),
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
