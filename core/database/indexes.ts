import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import type { Collections } from './database.ts'

export type IndexPlan = [
  collection: keyof Collections,
  keys: IndexSpecification,
  options: CreateIndexesOptions & { name: string },
]

/** Every index, by collection. */
export const indexes: IndexPlan[] = [
  // The log's order: one event per sequence and conversation.
  ['events', { conversationId: 1, sequence: 1 }, { name: 'by_sequence', unique: true }],
  // One event per logical operation. Prefixed with the conversation, so that it stays unique when
  // sharded.
  [
    'events',
    { conversationId: 1, operationKey: 1 },
    { name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },
  ],
  // For the removal of transient events. No TTL: the last event of a log must stay, or its sequence
  // would be assigned again.
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
  // One lead per submitted form.
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
  // One attempt per request.
  ['deliveries', { 'operations.key': 1 }, { name: 'by_operation', unique: true }],
  ['deliveries', { 'attempts.attemptId': 1 }, { name: 'by_attempt' }],
  ['deliveries', { leadId: 1, createdAt: -1, _id: -1 }, { name: 'by_lead' }],
  ['deliveries', { workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace' }],
  ['deliveries', { subscriptionId: 1, createdAt: -1, _id: -1 }, { name: 'by_subscription' }],
  // The queue by destination. It contains only deliveries with something to do. Its queries filter
  // by `destination`, which no other index begins with, so that the planner has one choice.
  [
    'deliveries',
    { destination: 1, dueAt: 1 },
    { name: 'due_by_destination', partialFilterExpression: { dueAt: { $exists: true } } },
  ],
  // The queue by time, for what is due next. Its filter differs so that the planner never uses it
  // for queries by destination, which would read it from end to end.
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
  // One command per operation of an operator.
  ['commands', { sessionId: 1, operationId: 1 }, { name: 'by_operation', unique: true }],
  ['commands', { sessionId: 1, requestedAt: -1, _id: -1 }, { name: 'by_session' }],
  ['commands', { state: 1, expiresAt: 1 }, { name: 'by_state' }],
  ['commands', { 'uploads.startedAt': 1 }, { name: 'by_upload', sparse: true }],
  // No TTL index: a command's screenshot must be deleted with it.
  ['commands', { deleteAt: 1 }, { name: 'by_deletion' }],
  ['idempotency', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  // For erasures.
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
