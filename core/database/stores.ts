import { createScreenshotStore } from '../commands/screenshot-store.ts'
import { keepLatestConsent } from '../consents/consents.ts'
import { createDeliveryHoldStore } from '../delivery-stores/delivery-hold-store.ts'
import { createDeliveryQueue } from '../delivery-stores/delivery-queue-store.ts'
import { createDeliveryRecoveryStore } from '../delivery-stores/delivery-recovery-store.ts'
import { createDeliverySourceStore } from '../delivery-stores/delivery-source-store.ts'
import { createDeliveryStore } from '../delivery-stores/delivery-store.ts'
import { createDeliverySuppressionStore } from '../delivery-stores/delivery-suppression-store.ts'
import { createEventFollowerStore } from '../destinations/event-follower-store.ts'
import { createLeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import { createFeedSourceStore } from '../feed/feed-source-store.ts'
import { createFeedStore } from '../feed/feed-store.ts'
import { createLeadFeedStore } from '../feed/lead-feed-store.ts'
import { createIdempotencyStore } from '../idempotency/idempotency-store.ts'
import { createLeadStore } from '../leads/lead-store.ts'
import { createSuppressionStore } from '../leads/suppression-store.ts'
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

/** Calls `done` after each of these writes. */
function after<S extends object>(done: () => void, store: S, ...writes: (keyof S)[]): S {
  for (const name of writes) {
    const write = store[name] as (...args: unknown[]) => Promise<unknown>
    store[name] = ((...args: unknown[]) => write(...args).finally(done)) as S[keyof S]
  }
  return store
}

/** All stores of a core process. The modules access the database only through them. */
export type Stores = ReturnType<typeof createStores>

/** @param onMarked called after writes that mark what lacks an entry in the feed of leads */
export function createStores({ collections, screenshots }: Database, onMarked = () => {}) {
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
    deliveries: after(onMarked, createDeliveryStore(collections), 'insertEach'),
    deliveryRecoveries: createDeliveryRecoveryStore(collections),
    deliverySources: createDeliverySourceStore(collections),
    deliverySuppressions: after(onMarked, createDeliverySuppressionStore(collections), 'end'),
    deliveryHolds: createDeliveryHoldStore(collections),
    deliveryQueue: after(onMarked, createDeliveryQueue(collections), 'settle'),
    events: createEventStore(collections),
    feed: createFeedStore(collections),
    feedSources: createFeedSourceStore(collections),
    followers: createFollowerStore(collections),
    idempotency: createIdempotencyStore(collections),
    leads: after(onMarked, createLeadStore(collections), 'insert'),
    leadFeed: createLeadFeedStore(collections),
    leadSubscriptions: after(onMarked, createLeadSubscriptionStore(collections), 'disable', 'beginDeadLetters'),
    eventFollowers: createEventFollowerStore(collections),
    suppressions: createSuppressionStore(collections),
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
