import { screenshotStoreOf } from '../commands/screenshot-store.ts'
import { keepLatestConsent } from '../consents/consents.ts'
import type { Core } from '../core.ts'
import { followerStoreOf } from '../log/follower-store.ts'
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
import { sessionStoreOf } from '../sessions/session-store.ts'
import { workspaceStoreOf } from '../workspaces/workspace-store.ts'

/** The stores that privacy and operators take as objects. */
export function createStores(core: Core) {
  const { db } = core
  const consents = {
    keepLatest: (session: Session, removedIds: string[]) => keepLatestConsent(core, session, removedIds),
  }
  const files = screenshotStoreOf(core)
  const retention = createRetentionStore(db)
  const data = createDataStore({ ...db, consents, files, retention })
  return {
    consoleSessions: createConsoleSessionStore(db),
    conversationFacts: createConversationFactsStore(db),
    data,
    deletions: createDeletionStore({ ...db, data }),
    followers: followerStoreOf(core),
    removals: createRemovalStore(db),
    retention,
    screenshots: files,
    sessions: sessionStoreOf(core),
    teams: createTeamStore(db),
    visitorData: createVisitorDataStore(db),
    visitorTraces: createVisitorTraceStore(db),
    workspaces: workspaceStoreOf(core),
  }
}
