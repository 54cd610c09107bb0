import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import type { Collections } from './collections.ts'

type Options = CreateIndexesOptions & { name: string }

export type IndexPlan = [collection: keyof Collections, keys: IndexSpecification, options: Options]

/** By default, of the documents that have the field. */
const having = (name: string, field: string, value: unknown = { $exists: true }): Options => ({
  name,
  partialFilterExpression: { [field]: value },
})

const expiry: Options = { name: 'expiry', expireAfterSeconds: 0 }

const plans: [collection: keyof Collections, keys: IndexSpecification, options: Options | string][] = [
  // Allows one event per conversation and sequence, and sorts a log by sequence.
  ['events', { conversationId: 1, sequence: 1 }, { name: 'by_sequence', unique: true }],
  // Allows one event per logical operation.
  ['events', { conversationId: 1, operationKey: 1 }, { ...having('by_operation', 'operationKey'), unique: true }],
  // Not a TTL index: the last event of a log must stay, because its sequence would be assigned again.
  ['events', { removableAt: 1 }, having('by_removal', 'removableAt')],
  ['events', { unapplied: 1, conversationId: 1 }, having('unapplied_by_conversation', 'unapplied', true)],
  // Finds the messages that grow, and those that have ended without their event.
  ['events', { 'growth.until': 1 }, having('growing', 'growth.until')],
  ['conversations', { workspaceId: 1, lastMessageAt: -1, _id: -1 }, 'by_activity'],
  // The operators' queues. The queries name their index, see below.
  ['conversations', { workspaceId: 1, 'queue.waitingSince': 1, _id: 1 }, having('by_waiting', 'queue.waitingSince')],
  ['conversations', { 'mail.dueAt': 1 }, having('by_mail', 'mail.dueAt')],
  ['conversations', { unseenAt: 1 }, having('by_unseen', 'unseenAt')],
  [
    'conversations',
    { workspaceId: 1, 'queue.open': 1, 'assignment.agent.displayName': 1 },
    having('by_openness', 'queue.open', true),
  ],
  [
    'conversations',
    { workspaceId: 1, 'queue.open': 1, 'assignment.operator': 1 },
    having('by_assignee', 'queue.open', true),
  ],
  ['conversations', { workspaceId: 1, 'tags.names': 1, lastMessageAt: -1, _id: -1 }, having('by_tag', 'tags.names')],
  ['conversations', { workspaceId: 1, 'tags.at': -1 }, having('by_tag_change', 'tags.at')],
  ['conversations', { 'tags.announced': 1 }, having('unannounced_tags', 'tags.announced', false)],
  ['conversations', { 'assignment.announced': 1 }, having('unannounced', 'assignment.announced', false)],
  ['conversations', { 'bots.announced': 1 }, having('unannounced_bots', 'bots.announced', false)],
  ['typing', { endsAt: 1 }, 'by_end'],
  // Allows one lead per submitted form.
  ['leads', { operationKey: 1 }, { ...having('by_operation', 'operationKey'), unique: true }],
  ['leads', { workspaceId: 1, createdAt: -1, _id: -1 }, 'by_capture'],
  ['leads', { 'fanOut.since': 1 }, having('by_fan_out', 'fanOut.since')],
  ['leadSubscriptions', { workspaceId: 1, createdAt: -1, _id: -1 }, 'by_workspace'],
  // Limits hooks and lead subscriptions, also for parallel calls.
  ['leadSubscriptions', { workspaceId: 1, place: 1 }, { ...having('by_place', 'place'), unique: true }],
  ['leadSubscriptions', { 'notices.at': 1 }, having('by_notice', 'notices.at')],
  ['leadSubscriptions', { 'recovery.nextStepAt': 1 }, having('by_recovery', 'recovery.nextStepAt')],
  // Find the destinations that the metrics count.
  ['leadSubscriptions', { disabledReason: 1 }, having('by_disabled', 'disabledReason')],
  ['leadSubscriptions', { failingSince: 1 }, having('by_failing', 'failingSince')],
  // Finds the destinations that receive events of a workspace's feed.
  ['leadSubscriptions', { workspaceId: 1, followedTo: 1 }, having('by_feed', 'followedTo', { $gte: 0 })],
  // Allows one operation, which creates or retries an attempt, per key.
  ['deliveries', { 'operations.key': 1 }, { name: 'by_operation', unique: true }],
  ['deliveries', { 'attempts.attemptId': 1 }, 'by_attempt'],
  ['deliveries', { leadId: 1, createdAt: -1, _id: -1 }, 'by_lead'],
  ['deliveries', { conversationId: 1 }, having('by_conversation', 'conversationId')],
  // The queries name their index, because the planner of some engines rejects queries that several indexes
  // could answer.
  ['deliveries', { workspaceId: 1, status: 1, createdAt: -1, _id: -1 }, 'by_workspace_status'],
  ['deliveries', { subscriptionId: 1, status: 1, createdAt: -1, _id: -1 }, 'by_subscription_status'],
  // The queue of deliveries that a worker must process. No other index begins with `destination`, by which its
  // queries filter, so the planner always chooses it.
  ['deliveries', { destination: 1, dueAt: 1 }, having('due_by_destination', 'dueAt')],
  // The queue by time. Its filter differs from the one above, so that the planner never reads this whole index
  // for queries by destination.
  ['deliveries', { dueAt: 1, destination: 1 }, having('due', 'dueAt', { $gt: new Date(0) })],
  // Finds retries that were scheduled while a clock was ahead.
  ['deliveries', { updatedAt: 1 }, having('scheduled', 'next')],
  ['deliveries', { destination: 1, status: 1, updatedAt: 1 }, having('held_since', 'status', 'held')],
  ['deliveries', { destination: 1, requestedAt: -1 }, having('by_request', 'requestedAt')],
  ['deliveries', { 'verdict.attemptId': 1 }, having('verdicts', 'verdict')],
  ['deliveries', { deleteAt: 1 }, expiry],
  ['sessions', { visitorId: 1, status: 1 }, 'by_visitor'],
  ['sessions', { 'identity.subjectId': 1, status: 1 }, having('by_subject', 'identity.subjectId')],
  [
    'sessions',
    { 'identity.subjectId': 1, publicSiteKey: 1, 'consents.decidedAt': -1 },
    having('by_consent', 'consents'),
  ],
  ['suppressions', { workspaceId: 1, addedAt: -1, _id: -1 }, 'by_workspace'],
  ['suppressions', { unswept: 1 }, { name: 'unswept', sparse: true }],
  ['leads', { contacts: 1 }, having('by_contact', 'contacts')],
  ['pictures', { workspaceId: 1, owner: 1 }, 'by_owner'],
  ['pictures', { deleteAt: 1 }, expiry],
  ['tokens', { listedAt: -1, _id: -1 }, 'by_use'],
  ['tokens', { workspaceId: 1, listedAt: -1, _id: -1 }, 'by_workspace'],
  ['tokens', { revokedAt: 1 }, having('by_revocation', 'revokedAt')],
  ['tokens', { removeAt: 1 }, expiry],
  ['policyChanges', { workspaceId: 1, at: -1, _id: -1 }, 'by_workspace'],
  ['policyChanges', { target: 1, at: -1, _id: -1 }, 'by_target'],
  ['networkBans', { network: 1, endsAt: 1 }, 'by_network'],
  ['networkBans', { visitorIds: 1 }, 'by_visitor'],
  ['networkBans', { endsAt: 1 }, expiry],
  ['consoleSessions', { expiresAt: 1 }, expiry],
  ['consoleSessions', { workspaceId: 1 }, 'by_workspace'],
  ['consoleSessions', { 'provider.recheckAt': 1 }, having('by_recheck', 'provider.recheckAt')],
  ['signInAttempts', { expiresAt: 1 }, expiry],
  ['signInLinks', { expiresAt: 1 }, expiry],
  ['signInLinks', { workspaceId: 1 }, 'by_workspace'],
  ['teams', { 'members.mail': 1 }, 'by_mail'],
  ['teams', { 'members.notifications.isOn': 1 }, { name: 'by_notifications', sparse: true }],
  ['passkeys', { workspaceId: 1, operator: 1 }, 'by_operator'],
  ['nonces', { expiresAt: 1 }, expiry],
  ['installations', { origins: 1 }, 'by_origin'],
  ['installations', { workspaceId: 1 }, 'by_workspace'],
  ['connections', { workspaceId: 1 }, 'by_workspace'],
  // Allows one command per session and operation id, which the operator chooses.
  ['commands', { sessionId: 1, operationId: 1 }, { name: 'by_operation', unique: true }],
  ['commands', { sessionId: 1, requestedAt: -1, _id: -1 }, 'by_session'],
  ['commands', { state: 1, expiresAt: 1 }, 'by_state'],
  ['commands', { 'uploads.startedAt': 1 }, { name: 'by_upload', sparse: true }],
  // Not a TTL index, because a command's screenshot must be deleted together with the command.
  ['commands', { deleteAt: 1 }, 'by_deletion'],
  ['idempotency', { expiresAt: 1 }, expiry],
  // For the erasure of the session's visitor.
  ['idempotency', { sessionIds: 1 }, { name: 'by_session', sparse: true }],
  ['leads', { conversationId: 1 }, having('by_conversation', 'conversationId')],
  // Retention sweeps. The indexes of reviews and postponements find data that may be too old.
  ['workspaces', { sweepAt: 1 }, 'due'],
  ['sessions', { publicSiteKey: 1, reviewAt: 1 }, 'by_review'],
  ['sessions', { publicSiteKey: 1, postponedUntil: 1 }, having('by_postponement', 'postponedUntil')],
  ['conversations', { connectionId: 1, postponedUntil: 1 }, having('by_postponement', 'postponedUntil')],
  ['sessions', { linkedSubjectIds: 1 }, { name: 'by_linked_subject', sparse: true }],
  ['conversations', { connectionId: 1, reviewAt: 1 }, 'by_review'],
  ['conversations', { epoch: 1 }, 'by_epoch'],
  ['erasures', { epochs: 1 }, { name: 'by_epoch', sparse: true }],
  ['visitors', { connectionId: 1 }, { name: 'by_connection', sparse: true }],
  ['visitors', { workspaceId: 1 }, { name: 'by_workspace', sparse: true }],
  ['subjects', { conversationId: 1 }, 'by_conversation'],
  ['leads', { visitorIds: 1 }, { name: 'by_visitor', sparse: true }],
  ['erasures', { workspaceId: 1, finishedAt: 1 }, 'by_workspace'],
  ['removals', { nextAt: 1 }, 'due'],
  ['removals', { workspaceId: 1, stage: 1 }, 'by_workspace'],
  ['operatorPresence', { until: 1 }, expiry],
  ['erasures', { nextAt: 1 }, { name: 'due', sparse: true }],
  ['erasures', { 'traces.visitorIds': 1 }, { name: 'by_visitor', sparse: true }],
  ['sessions', { conversationId: 1 }, 'by_conversation'],
  // Finds and counts search entries by their words. The queries name their index.
  ['searchEntries', { workspaceId: 1, terms: 1 }, 'by_term'],
  ['searchEntries', { workspaceId: 1, at: -1, _id: -1 }, 'by_time'],
  // For sessions and leads. The ids of messages and notes begin with the conversation id.
  ['searchEntries', { conversationId: 1 }, having('by_conversation', 'conversationId')],
  // Allows one entry per place of a feed, and one per event.
  ['feedEntries', { workspaceId: 1, number: 1 }, { name: 'by_number', unique: true }],
  ['feedEntries', { workspaceId: 1, source: 1 }, { ...having('by_source', 'source'), unique: true }],
  ['feedEntries', { conversationId: 1, sequence: 1 }, having('by_conversation', 'conversationId')],
  ['feedEntries', { leadId: 1 }, having('by_lead', 'leadId')],
  // Not a TTL index: the last entry of a feed must stay, because its number would be given again.
  ['feedEntries', { storedAt: 1 }, 'by_age'],
  ['leads', { unannounced: 1 }, having('unannounced', 'unannounced', true)],
  ['deliveries', { unannounced: 1 }, having('unannounced', 'unannounced', true)],
]

export const indexes = plans.map(
  ([collection, keys, options]): IndexPlan => [
    collection,
    keys,
    typeof options === 'string' ? { name: options } : options,
  ],
)
