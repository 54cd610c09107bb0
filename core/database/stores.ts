import { createCommandStore } from '../commands/command-store.ts'
import { createScreenshotStore } from '../commands/screenshot-store.ts'
import { createConversationStore } from '../conversations/conversation-store.ts'
import { createMessageStateStore } from '../conversations/message-state-store.ts'
import { createTypingStore } from '../conversations/typing-store.ts'
import { createDeliveryHoldStore } from '../deliveries/delivery-hold-store.ts'
import { createDeliveryQueue } from '../deliveries/delivery-queue.ts'
import { createDeliveryStore } from '../deliveries/delivery-store.ts'
import { createLeadSubscriptionStore } from '../deliveries/lead-subscription-store.ts'
import { createIdempotencyStore } from '../idempotency/idempotency-store.ts'
import { createKeyStore } from '../keys/key-store.ts'
import { createLeadStore } from '../leads/lead-store.ts'
import { createEventStore } from '../log/event-store.ts'
import { createTransientEventStore } from '../log/transient-store.ts'
import { createWakeupStore } from '../log/wakeup-store.ts'
import { createErasureStore } from '../privacy/erasure-store.ts'
import { createVisitorDataStore } from '../privacy/visitor-data-store.ts'
import { createVisitorRemoval } from '../privacy/visitor-removal-store.ts'
import { createVisitorTraceStore } from '../privacy/visitor-traces-store.ts'
import { createNonceStore } from '../visitors/nonce-store.ts'
import { createSessionStore } from '../visitors/session-store.ts'
import { createSubjectStore } from '../visitors/subject-store.ts'
import { createWorkspaceStore } from '../workspaces/workspace-store.ts'
import type { Database } from './database.ts'

/** All stores of one core process, the only access of its modules to the database. */
export type Stores = ReturnType<typeof createStores>

export function createStores({ collections, screenshots, nudge }: Database) {
  return {
    commands: createCommandStore(collections),
    conversations: createConversationStore(collections),
    deliveries: createDeliveryStore(collections),
    deliveryHolds: createDeliveryHoldStore(collections),
    deliveryQueue: createDeliveryQueue(collections),
    erasures: createErasureStore(collections),
    events: createEventStore(collections),
    idempotency: createIdempotencyStore(collections),
    keys: createKeyStore(collections),
    leads: createLeadStore(collections),
    leadSubscriptions: createLeadSubscriptionStore(collections),
    messageStates: createMessageStateStore(collections),
    nonces: createNonceStore(collections),
    screenshots: createScreenshotStore(screenshots),
    sessions: createSessionStore(collections),
    subjects: createSubjectStore(collections),
    transientEvents: createTransientEventStore(collections),
    typing: createTypingStore(collections),
    visitorData: createVisitorDataStore(collections),
    visitorRemoval: createVisitorRemoval(collections),
    visitorTraces: createVisitorTraceStore(collections),
    wakeups: createWakeupStore({ ...collections, nudge }),
    workspaces: createWorkspaceStore(collections),
  }
}
