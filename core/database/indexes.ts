import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import type { Collections } from './database.ts'

export type IndexPlan = [
  collection: keyof Collections,
  keys: IndexSpecification,
  options: CreateIndexesOptions & { name: string },
]

/** Every index, by its collection. */
export const indexes: IndexPlan[] = [
  // The log's order: one event for each place in a conversation.
  ['events', { conversationId: 1, sequence: 1 }, { name: 'by_sequence', unique: true }],
  // One event for each logical operation. Prefixed with the conversation, so that it can stay unique when sharded.
  [
    'events',
    { conversationId: 1, operationKey: 1 },
    { name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },
  ],
  // What the sweep of transient events looks for. No TTL: an end of a log must stay, or its place would be given out again.
  ['events', { removableAt: 1 }, { name: 'by_removal', partialFilterExpression: { removableAt: { $exists: true } } }],
  [
    'events',
    { unapplied: 1, conversationId: 1 },
    { name: 'unapplied_by_conversation', partialFilterExpression: { unapplied: true } },
  ],
  ['conversations', { workspaceId: 1, lastMessageAt: -1, _id: -1 }, { name: 'by_activity' }],
  [
    'conversations',
    { 'assignment.announced': 1 },
    { name: 'unannounced', partialFilterExpression: { 'assignment.announced': false } },
  ],
  ['typing', { endsAt: 1 }, { name: 'by_end' }],
  // One lead for each form that a visitor sent.
  [
    'leads',
    { operationKey: 1 },
    { name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },
  ],
  ['leads', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_capture' }],
  [
    'leads',
    { 'fanOut.since': 1 },
    { name: 'by_fan_out', partialFilterExpression: { 'fanOut.since': { $exists: true } } },
  ],
  ['leadSubscriptions', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace' }],
  // One attempt for each request that asked for one.
  ['deliveries', { 'operations.key': 1 }, { name: 'by_operation', unique: true }],
  ['deliveries', { 'attempts.attemptId': 1 }, { name: 'by_attempt' }],
  ['deliveries', { leadId: 1, createdAt: -1, _id: -1 }, { name: 'by_lead' }],
  ['deliveries', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace' }],
  ['deliveries', { subscriptionId: 1, createdAt: -1, _id: -1 }, { name: 'by_subscription' }],
  // The queue, by destination: it holds what there is something to do for, and nothing that has ended. Its questions are
  // asked by a field that no other index has, so that they have one possible plan, whatever else there is of a subscription.
  [
    'deliveries',
    { destination: 1, dueAt: 1 },
    { name: 'due_by_destination', partialFilterExpression: { dueAt: { $exists: true } } },
  ],
  // The queue by time, for the question what comes next. Its filter is another one so that no other question is ever
  // answered from it: asked for the destinations, it would be read from end to end.
  [
    'deliveries',
    { dueAt: 1, destination: 1 },
    { name: 'due', partialFilterExpression: { dueAt: { $gt: new Date(0) } } },
  ],
  ['deliveries', { destination: 1, status: 1 }, { name: 'held', partialFilterExpression: { status: 'held' } }],
  [
    'deliveries',
    { destination: 1, requestedAt: -1 },
    { name: 'by_request', partialFilterExpression: { requestedAt: { $exists: true } } },
  ],
  [
    'deliveries',
    { 'verdict.attemptId': 1 },
    { name: 'verdicts', partialFilterExpression: { verdict: { $exists: true } } },
  ],
  ['deliveries', { deleteAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['sessions', { visitorId: 1, status: 1 }, { name: 'by_visitor' }],
  [
    'sessions',
    { 'identity.subjectId': 1, status: 1 },
    { name: 'by_subject', partialFilterExpression: { 'identity.subjectId': { $exists: true } } },
  ],
  ['nonces', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['installations', { origins: 1 }, { name: 'by_origin' }],
  ['installations', { workspaceId: 1 }, { name: 'by_workspace' }],
  // One command for each operation of an operator.
  ['commands', { sessionId: 1, operationId: 1 }, { name: 'by_operation', unique: true }],
  ['commands', { sessionId: 1, requestedAt: -1, _id: -1 }, { name: 'by_session' }],
  ['commands', { state: 1, expiresAt: 1 }, { name: 'by_state' }],
  ['commands', { 'uploads.startedAt': 1 }, { name: 'by_upload', sparse: true }],
  // No expiry index: what a command has in the screenshot store goes with it.
  ['commands', { deleteAt: 1 }, { name: 'by_deletion' }],
  ['idempotency', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  // What an erasure looks for.
  ['idempotency', { sessionIds: 1 }, { name: 'by_session', sparse: true }],
  [
    'leads',
    { conversationId: 1 },
    { name: 'by_conversation', partialFilterExpression: { conversationId: { $exists: true } } },
  ],
  ['erasures', { nextAt: 1 }, { name: 'due', sparse: true }],
  ['erasures', { 'traces.visitorIds': 1 }, { name: 'by_visitor', sparse: true }],
  ['sessions', { conversationId: 1 }, { name: 'by_conversation' }],
]
