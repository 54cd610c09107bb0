import { createScreenshotStore } from '../commands/screenshot-store.ts'
import { keepLatestConsent } from '../consents/consents.ts'
import { createIdempotencyStore } from '../idempotency/idempotency-store.ts'
import { createEventStore } from '../log/event-store.ts'
import { createFollowerStore } from '../log/follower-store.ts'
import { createConsoleSessionStore } from '../operators/console-session-store.ts'
import { createTeamStore } from '../operators/team-store.ts'
import { createConversationFactsStore } from '../privacy/conversation-facts-store.ts'
import { createDataStore } from '../privacy/data-store.ts'
import { createDeletionStore } from '../privacy/deletion-store.ts'
import { createRemovalStore } from '../privacy/removal-store.ts'
import { createRetentionStore } from '../privacy/retention-store.ts'
import { createVisitorDataStore } from '../privacy/visitor-data-store.ts'
import { createVisitorTraceStore } from '../privacy/visitor-trace-store.ts'
import type { Session } from '../sessions/model.ts'
import { createSessionStore } from '../sessions/session-store.ts'
import { createWorkspaceStore } from '../workspaces/workspace-store.ts'
import type { Database } from './database.ts'

/** All stores of a core process. The modules access the database only through them. */
export type Stores = ReturnType<typeof createStores>

export function createStores({ collections, screenshots }: Database) {
  const consents = {
    keepLatest: (session: Session, removedIds: string[]) => keepLatestConsent({ db: collections }, session, removedIds),
  }
  const files = createScreenshotStore(screenshots)
  const retention = createRetentionStore(collections)
  const data = createDataStore({ ...collections, consents, files, retention })
  return {
    consoleSessions: createConsoleSessionStore(collections),
    conversationFacts: createConversationFactsStore(collections),
    data,
    deletions: createDeletionStore({ ...collections, data }),
    events: createEventStore(collections),
    followers: createFollowerStore(collections),
    idempotency: createIdempotencyStore(collections),
    removals: createRemovalStore(collections),
    retention,
    screenshots: files,
    sessions: createSessionStore(collections),
    teams: createTeamStore(collections),
    visitorData: createVisitorDataStore(collections),
    visitorTraces: createVisitorTraceStore(collections),
    workspaces: createWorkspaceStore(collections),
  }
}
