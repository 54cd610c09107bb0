import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import type { Collections } from './collections.ts'

export type IndexPlan = [
  collection: keyof Collections,
  keys: IndexSpecification,
  options: CreateIndexesOptions & { name: string },
]

export const indexes: IndexPlan[] = [
  // Allows one event per conversation and sequence, and sorts a log by sequence.
  ['events', { conversationId: 1, sequence: 1 }, { name: 'by_sequence', unique: true }],
  // Allows one event per logical operation.
  [
    'events',
    { conversationId: 1, operationKey: 1 },
    { name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },
  ],
  // Finds transient events to remove. This is not a TTL index: the last event of a log must stay,
  // because its sequence would otherwise be assigned again.
  ['events', { removableAt: 1 }, { name: 'by_removal', partialFilterExpression: { removableAt: { $exists: true } } }],
  [
    'events',
    { unapplied: 1, conversationId: 1 },
    { name: 'unapplied_by_conversation', partialFilterExpression: { unapplied: true } },
  ],
  // Finds the messages that grow, and those that have ended without their event.
  [
    'events',
    { 'growth.until': 1 },
    { name: 'growing', partialFilterExpression: { 'growth.until': { $exists: true } } },
  ],
  ['conversations', { workspaceId: 1, lastMessageAt: -1, _id: -1 }, { name: 'by_activity' }],
  // The operators' queues. The queries name their index, see below.
  [
    'conversations',
    { workspaceId: 1, 'queue.waitingSince': 1, _id: 1 },
    { name: 'by_waiting', partialFilterExpression: { 'queue.waitingSince': { $exists: true } } },
  ],
  [
    'conversations',
    { 'mail.dueAt': 1 },
    { name: 'by_mail', partialFilterExpression: { 'mail.dueAt': { $exists: true } } },
  ],
  ['conversations', { unseenAt: 1 }, { name: 'by_unseen', partialFilterExpression: { unseenAt: { $exists: true } } }],
  [
    'conversations',
    { workspaceId: 1, 'queue.open': 1, 'assignment.agent.displayName': 1 },
    { name: 'by_openness', partialFilterExpression: { 'queue.open': true } },
  ],
  [
    'conversations',
    { workspaceId: 1, 'queue.open': 1, 'assignment.operator': 1 },
    { name: 'by_assignee', partialFilterExpression: { 'queue.open': true } },
  ],
  [
    'conversations',
    { workspaceId: 1, 'tags.names': 1, lastMessageAt: -1, _id: -1 },
    { name: 'by_tag', partialFilterExpression: { 'tags.names': { $exists: true } } },
  ],
  [
    'conversations',
    { workspaceId: 1, 'tags.at': -1 },
    { name: 'by_tag_change', partialFilterExpression: { 'tags.at': { $exists: true } } },
  ],
  [
    'conversations',
    { 'tags.announced': 1 },
    { name: 'unannounced_tags', partialFilterExpression: { 'tags.announced': false } },
  ],
  [
    'conversations',
    { 'assignment.announced': 1 },
    { name: 'unannounced', partialFilterExpression: { 'assignment.announced': false } },
  ],
  [
    'conversations',
    { 'bots.announced': 1 },
    { name: 'unannounced_bots', partialFilterExpression: { 'bots.announced': false } },
  ],
  ['typing', { endsAt: 1 }, { name: 'by_end' }],
  // Allows one lead per submitted form.
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
  // Limits the number of hooks and of lead subscriptions, also for parallel calls.
  [
    'leadSubscriptions',
    { workspaceId: 1, place: 1 },
    { name: 'by_place', unique: true, partialFilterExpression: { place: { $exists: true } } },
  ],
  [
    'leadSubscriptions',
    { 'notices.at': 1 },
    { name: 'by_notice', partialFilterExpression: { 'notices.at': { $exists: true } } },
  ],
  [
    'leadSubscriptions',
    { 'recovery.nextStepAt': 1 },
    { name: 'by_recovery', partialFilterExpression: { 'recovery.nextStepAt': { $exists: true } } },
  ],
  // Find the destinations that the metrics count.
  [
    'leadSubscriptions',
    { disabledReason: 1 },
    { name: 'by_disabled', partialFilterExpression: { disabledReason: { $exists: true } } },
  ],
  [
    'leadSubscriptions',
    { failingSince: 1 },
    { name: 'by_failing', partialFilterExpression: { failingSince: { $exists: true } } },
  ],
  // Finds the destinations that receive events of a workspace's feed.
  [
    'leadSubscriptions',
    { workspaceId: 1, followedTo: 1 },
    { name: 'by_feed', partialFilterExpression: { followedTo: { $gte: 0 } } },
  ],
  // Allows one operation per key. An operation creates or retries an attempt.
  ['deliveries', { 'operations.key': 1 }, { name: 'by_operation', unique: true }],
  ['deliveries', { 'attempts.attemptId': 1 }, { name: 'by_attempt' }],
  ['deliveries', { leadId: 1, createdAt: -1, _id: -1 }, { name: 'by_lead' }],
  [
    'deliveries',
    { conversationId: 1 },
    { name: 'by_conversation', partialFilterExpression: { conversationId: { $exists: true } } },
  ],
  // Lists deliveries, newest first, one status after another. The queries name their index, because
  // the planner of some engines rejects queries that several indexes could answer.
  ['deliveries', { workspaceId: 1, status: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace_status' }],
  ['deliveries', { subscriptionId: 1, status: 1, createdAt: -1, _id: -1 }, { name: 'by_subscription_status' }],
  // The delivery queue by destination. It contains only deliveries that a worker must process. Its
  // queries filter by `destination`. No other index begins with that field, so the planner always
  // chooses this index.
  [
    'deliveries',
    { destination: 1, dueAt: 1 },
    { name: 'due_by_destination', partialFilterExpression: { dueAt: { $exists: true } } },
  ],
  // The delivery queue by time, to find the next due deliveries. Its filter differs from the filter
  // of the index above, so that the planner never uses this index for queries by destination. A
  // query by destination would read this whole index.
  [
    'deliveries',
    { dueAt: 1, destination: 1 },
    { name: 'due', partialFilterExpression: { dueAt: { $gt: new Date(0) } } },
  ],
  // Finds retries that were scheduled while a clock was ahead.
  ['deliveries', { updatedAt: 1 }, { name: 'scheduled', partialFilterExpression: { next: { $exists: true } } }],
  // Finds the held deliveries of a subscription, and those that have been held for too long.
  [
    'deliveries',
    { destination: 1, status: 1, updatedAt: 1 },
    { name: 'held_since', partialFilterExpression: { status: 'held' } },
  ],
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
  // Finds the latest consent of a subject with many sessions.
  [
    'sessions',
    { 'identity.subjectId': 1, publicSiteKey: 1, 'consents.decidedAt': -1 },
    { name: 'by_consent', partialFilterExpression: { consents: { $exists: true } } },
  ],
  ['suppressions', { workspaceId: 1, addedAt: -1, _id: -1 }, { name: 'by_workspace' }],
  ['suppressions', { unswept: 1 }, { name: 'unswept', sparse: true }],
  // Finds the leads of a person who is added to the suppression list.
  ['leads', { contacts: 1 }, { name: 'by_contact', partialFilterExpression: { contacts: { $exists: true } } }],
  ['pictures', { workspaceId: 1, owner: 1 }, { name: 'by_owner' }],
  ['pictures', { deleteAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['tokens', { listedAt: -1, _id: -1 }, { name: 'by_use' }],
  ['tokens', { workspaceId: 1, listedAt: -1, _id: -1 }, { name: 'by_workspace' }],
  ['tokens', { revokedAt: 1 }, { name: 'by_revocation', partialFilterExpression: { revokedAt: { $exists: true } } }],
  ['tokens', { removeAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['policyChanges', { workspaceId: 1, at: -1, _id: -1 }, { name: 'by_workspace' }],
  ['policyChanges', { target: 1, at: -1, _id: -1 }, { name: 'by_target' }],
  ['networkBans', { network: 1, endsAt: 1 }, { name: 'by_network' }],
  ['networkBans', { visitorIds: 1 }, { name: 'by_visitor' }],
  ['networkBans', { endsAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['consoleSessions', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['consoleSessions', { workspaceId: 1 }, { name: 'by_workspace' }],
  // Finds console sessions that are due for another check of the user at the identity provider.
  [
    'consoleSessions',
    { 'provider.recheckAt': 1 },
    { name: 'by_recheck', partialFilterExpression: { 'provider.recheckAt': { $exists: true } } },
  ],
  ['signInAttempts', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['signInLinks', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['signInLinks', { workspaceId: 1 }, { name: 'by_workspace' }],
  ['teams', { 'members.mail': 1 }, { name: 'by_mail' }],
  ['teams', { 'members.notifications.isOn': 1 }, { name: 'by_notifications', sparse: true }],
  ['passkeys', { workspaceId: 1, operator: 1 }, { name: 'by_operator' }],
  ['nonces', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['installations', { origins: 1 }, { name: 'by_origin' }],
  ['installations', { workspaceId: 1 }, { name: 'by_workspace' }],
  ['connections', { workspaceId: 1 }, { name: 'by_workspace' }],
  // Allows one command per session and operation id, which the operator chooses.
  ['commands', { sessionId: 1, operationId: 1 }, { name: 'by_operation', unique: true }],
  ['commands', { sessionId: 1, requestedAt: -1, _id: -1 }, { name: 'by_session' }],
  ['commands', { state: 1, expiresAt: 1 }, { name: 'by_state' }],
  ['commands', { 'uploads.startedAt': 1 }, { name: 'by_upload', sparse: true }],
  // Not a TTL index, because a command's screenshot must be deleted together with the command.
  ['commands', { deleteAt: 1 }, { name: 'by_deletion' }],
  ['idempotency', { expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  // Finds the idempotency records of a session. The erasure of the session's visitor removes these
  // records.
  ['idempotency', { sessionIds: 1 }, { name: 'by_session', sparse: true }],
  [
    'leads',
    { conversationId: 1 },
    { name: 'by_conversation', partialFilterExpression: { conversationId: { $exists: true } } },
  ],
  // Finds workspaces whose retention sweep is due. The review and postponement indexes below find
  // data that may be older than allowed.
  ['workspaces', { sweepAt: 1 }, { name: 'due' }],
  ['sessions', { publicSiteKey: 1, reviewAt: 1 }, { name: 'by_review' }],
  [
    'sessions',
    { publicSiteKey: 1, postponedUntil: 1 },
    { name: 'by_postponement', partialFilterExpression: { postponedUntil: { $exists: true } } },
  ],
  [
    'conversations',
    { connectionId: 1, postponedUntil: 1 },
    { name: 'by_postponement', partialFilterExpression: { postponedUntil: { $exists: true } } },
  ],
  ['sessions', { linkedSubjectIds: 1 }, { name: 'by_linked_subject', sparse: true }],
  ['conversations', { connectionId: 1, reviewAt: 1 }, { name: 'by_review' }],
  ['conversations', { epoch: 1 }, { name: 'by_epoch' }],
  ['erasures', { epochs: 1 }, { name: 'by_epoch', sparse: true }],
  ['visitors', { connectionId: 1 }, { name: 'by_connection', sparse: true }],
  ['visitors', { workspaceId: 1 }, { name: 'by_workspace', sparse: true }],
  ['subjects', { conversationId: 1 }, { name: 'by_conversation' }],
  ['leads', { visitorIds: 1 }, { name: 'by_visitor', sparse: true }],
  ['erasures', { workspaceId: 1, finishedAt: 1 }, { name: 'by_workspace' }],
  ['removals', { nextAt: 1 }, { name: 'due' }],
  ['removals', { workspaceId: 1, stage: 1 }, { name: 'by_workspace' }],
  ['operatorPresence', { until: 1 }, { name: 'expiry', expireAfterSeconds: 0 }],
  ['erasures', { nextAt: 1 }, { name: 'due', sparse: true }],
  ['erasures', { 'traces.visitorIds': 1 }, { name: 'by_visitor', sparse: true }],
  ['sessions', { conversationId: 1 }, { name: 'by_conversation' }],
  // Finds and counts search entries by their words. The queries name their index.
  ['searchEntries', { workspaceId: 1, terms: 1 }, { name: 'by_term' }],
  ['searchEntries', { workspaceId: 1, at: -1, _id: -1 }, { name: 'by_time' }],
  // Finds the entries of a conversation's sessions and leads. Entries of messages and notes need no
  // index, because their ids begin with the conversation id.
  [
    'searchEntries',
    { conversationId: 1 },
    { name: 'by_conversation', partialFilterExpression: { conversationId: { $exists: true } } },
  ],
  // Allows one entry per place of a feed, and one per event.
  ['feedEntries', { workspaceId: 1, number: 1 }, { name: 'by_number', unique: true }],
  [
    'feedEntries',
    { workspaceId: 1, source: 1 },
    { name: 'by_source', unique: true, partialFilterExpression: { source: { $exists: true } } },
  ],
  [
    'feedEntries',
    { conversationId: 1, sequence: 1 },
    { name: 'by_conversation', partialFilterExpression: { conversationId: { $exists: true } } },
  ],
  ['feedEntries', { leadId: 1 }, { name: 'by_lead', partialFilterExpression: { leadId: { $exists: true } } }],
  // Not a TTL index: the last entry of a feed must stay, because its number would be given again.
  ['feedEntries', { storedAt: 1 }, { name: 'by_age' }],
  ['leads', { unannounced: 1 }, { name: 'unannounced', partialFilterExpression: { unannounced: true } }],
  ['deliveries', { unannounced: 1 }, { name: 'unannounced', partialFilterExpression: { unannounced: true } }],
]
