import { createCommandStore } from './commands.ts'
import { createConversationStore } from './conversations.ts'
import type { Database } from './database.ts'
import { createDeliveryStore } from './deliveries.ts'
import { createDeliveryHoldStore } from './delivery-holds.ts'
import { createDeliveryQueue } from './delivery-queue.ts'
import { createErasureStore } from './erasures.ts'
import { createEventStore } from './events.ts'
import { createIdempotencyStore } from './idempotency.ts'
import { createKeyStore } from './keys.ts'
import { createLeadSubscriptionStore } from './lead-subscriptions.ts'
import { createLeadStore } from './leads.ts'
import { createMessageStateStore } from './message-states.ts'
import { createNonceStore } from './nonces.ts'
import { createScreenshotStore } from './screenshots.ts'
import { createSessionStore } from './sessions.ts'
import { createSubjectStore } from './subjects.ts'
import { createTransientEventStore } from './transient-events.ts'
import { createTypingStore } from './typing.ts'
import { createVisitorDataStore } from './visitor-data.ts'
import { createVisitorRemoval } from './visitor-removal.ts'
import { createVisitorTraceStore } from './visitor-traces.ts'
import { createWakeupStore } from './wakeups.ts'
import { createWorkspaceStore } from './workspaces.ts'

/** The stores of one core process: all that its modules know of the database. */
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
