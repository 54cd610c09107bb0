import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import type { Collections } from './collections.ts'

const unique: CreateIndexesOptions = { unique: true }

/** An index of the documents in which the field has this value; by default, of those that have the field. */
const having = (field: string, value: unknown = { $exists: true }): CreateIndexesOptions => ({
  partialFilterExpression: { [field]: value },
})
const uniqueIn = (field: string) => ({ ...having(field), ...unique })

type IndexPlan = [keys: IndexSpecification, options?: CreateIndexesOptions]
const by = (field: string): IndexPlan => [{ [field]: 1 }]
const where = (field: string, value?: unknown): IndexPlan => [{ [field]: 1 }, having(field, value)]
const ifPresent = (field: string): IndexPlan => [{ [field]: 1 }, { sparse: true }]
const endingAt = (field: string): IndexPlan => [{ [field]: 1 }, { expireAfterSeconds: 0 }]

const plans: {
  [Name in keyof Collections]?: Record<string, IndexPlan>
} = {
  events: {
    // Allows one event per conversation and sequence, and sorts a log by sequence.
    by_sequence: [{ conversationId: 1, sequence: 1 }, unique],
    // Allows one event per logical operation.
    by_operation: [{ conversationId: 1, operationKey: 1 }, uniqueIn('operationKey')],
    // Not a TTL index: the last event of a log must stay, because its sequence would be assigned again.
    by_removal: where('removableAt'),
    unapplied_by_conversation: [{ unapplied: 1, conversationId: 1 }, having('unapplied', true)],
    // Finds the messages that grow, and those that have ended without their event.
    growing: where('growth.until'),
  },
  conversations: {
    by_activity: [{ workspaceId: 1, lastMessageAt: -1, _id: -1 }],
    // The operators' queues. Their queries name this index, for the same reason as those of deliveries.
    by_waiting: [{ workspaceId: 1, 'queue.waitingSince': 1, _id: 1 }, having('queue.waitingSince')],
    by_mail: where('mail.dueAt'),
    by_unseen: where('unseenAt'),
    by_openness: [{ workspaceId: 1, 'queue.open': 1, 'assignment.agent.displayName': 1 }, having('queue.open', true)],
    by_assignee: [{ workspaceId: 1, 'queue.open': 1, 'assignment.operator': 1 }, having('queue.open', true)],
    by_tag: [{ workspaceId: 1, 'tags.names': 1, lastMessageAt: -1, _id: -1 }, having('tags.names')],
    by_tag_change: [{ workspaceId: 1, 'tags.at': -1 }, having('tags.at')],
    unannounced_tags: where('tags.announced', false),
    unannounced: where('assignment.announced', false),
    unannounced_bots: where('bots.announced', false),
    by_postponement: [{ connectionId: 1, postponedUntil: 1 }, having('postponedUntil')],
    by_review: [{ connectionId: 1, reviewAt: 1 }],
    by_epoch: by('epoch'),
  },
  typing: { by_end: by('endsAt') },
  leads: {
    // Allows one lead per submitted form.
    by_operation: [{ operationKey: 1 }, uniqueIn('operationKey')],
    by_capture: [{ workspaceId: 1, createdAt: -1, _id: -1 }],
    by_fan_out: where('fanOut.since'),
    by_contact: where('contacts'),
    by_conversation: where('conversationId'),
    by_visitor: ifPresent('visitorIds'),
    unannounced: where('unannounced', true),
  },
  leadSubscriptions: {
    by_workspace: [{ workspaceId: 1, createdAt: -1, _id: -1 }],
    // Limits the number of hooks and lead subscriptions, also for parallel calls.
    by_place: [{ workspaceId: 1, place: 1 }, uniqueIn('place')],
    by_notice: where('notices.at'),
    by_recovery: where('recovery.nextStepAt'),
    // This index and the next one find the destinations that the metrics count.
    by_disabled: where('disabledReason'),
    by_failing: where('failingSince'),
    // Finds the destinations that receive events of a workspace's feed.
    by_feed: [{ workspaceId: 1, followedTo: 1 }, having('followedTo', { $gte: 0 })],
  },
  deliveries: {
    // Allows one operation per key. An operation creates or retries an attempt.
    by_operation: [{ 'operations.key': 1 }, unique],
    by_attempt: by('attempts.attemptId'),
    by_lead: [{ leadId: 1, createdAt: -1, _id: -1 }],
    by_conversation: where('conversationId'),
    // The queries name their index, because the planner of some engines rejects queries that several indexes
    // could answer.
    by_workspace_status: [{ workspaceId: 1, status: 1, createdAt: -1, _id: -1 }],
    by_subscription_status: [{ subscriptionId: 1, status: 1, createdAt: -1, _id: -1 }],
    // The queue of deliveries that a worker must process. No other index begins with `destination`, by which its
    // queries filter, so the planner always chooses it.
    due_by_destination: [{ destination: 1, dueAt: 1 }, having('dueAt')],
    // The queue by time. Its filter differs from the one above, so that the planner never reads this whole index
    // for queries by destination.
    due: [{ dueAt: 1, destination: 1 }, having('dueAt', { $gt: new Date(0) })],
    // Finds retries that were scheduled while a clock was ahead.
    scheduled: [{ updatedAt: 1 }, having('next')],
    held_since: [{ destination: 1, status: 1, updatedAt: 1 }, having('status', 'held')],
    by_request: [{ destination: 1, requestedAt: -1 }, having('requestedAt')],
    verdicts: [{ 'verdict.attemptId': 1 }, having('verdict')],
    expiry: endingAt('deleteAt'),
    unannounced: where('unannounced', true),
  },
  sessions: {
    by_visitor: [{ visitorId: 1, status: 1 }],
    by_subject: [{ 'identity.subjectId': 1, status: 1 }, having('identity.subjectId')],
    by_consent: [{ 'identity.subjectId': 1, publicSiteKey: 1, 'consents.decidedAt': -1 }, having('consents')],
    by_review: [{ publicSiteKey: 1, reviewAt: 1 }],
    by_postponement: [{ publicSiteKey: 1, postponedUntil: 1 }, having('postponedUntil')],
    by_linked_subject: ifPresent('linkedSubjectIds'),
    by_conversation: by('conversationId'),
  },
  suppressions: {
    by_workspace: [{ workspaceId: 1, addedAt: -1, _id: -1 }],
    unswept: ifPresent('unswept'),
  },
  pictures: {
    by_owner: [{ workspaceId: 1, owner: 1 }],
    expiry: endingAt('deleteAt'),
  },
  tokens: {
    by_use: [{ listedAt: -1, _id: -1 }],
    by_workspace: [{ workspaceId: 1, listedAt: -1, _id: -1 }],
    by_revocation: where('revokedAt'),
    expiry: endingAt('removeAt'),
  },
  policyChanges: {
    by_workspace: [{ workspaceId: 1, at: -1, _id: -1 }],
    by_target: [{ target: 1, at: -1, _id: -1 }],
  },
  networkBans: {
    by_network: [{ network: 1, endsAt: 1 }],
    by_visitor: by('visitorIds'),
    expiry: endingAt('endsAt'),
  },
  consoleSessions: {
    expiry: endingAt('expiresAt'),
    by_workspace: by('workspaceId'),
    by_recheck: where('provider.recheckAt'),
  },
  signInAttempts: { expiry: endingAt('expiresAt') },
  signInLinks: {
    expiry: endingAt('expiresAt'),
    by_workspace: by('workspaceId'),
  },
  teams: {
    by_mail: by('members.mail'),
    by_notifications: ifPresent('members.notifications.isOn'),
  },
  passkeys: { by_operator: [{ workspaceId: 1, operator: 1 }] },
  nonces: { expiry: endingAt('expiresAt') },
  installations: {
    by_origin: by('origins'),
    by_workspace: by('workspaceId'),
  },
  connections: { by_workspace: by('workspaceId') },
  commands: {
    // Allows one command per session and operation id, which the operator chooses.
    by_operation: [{ sessionId: 1, operationId: 1 }, unique],
    by_session: [{ sessionId: 1, requestedAt: -1, _id: -1 }],
    by_state: [{ state: 1, expiresAt: 1 }],
    by_upload: ifPresent('uploads.startedAt'),
    // Not a TTL index, because a command's screenshot must be deleted together with the command.
    by_deletion: by('deleteAt'),
  },
  idempotency: {
    expiry: endingAt('expiresAt'),
    // The erasure of a visitor removes the records of the visitor's sessions.
    by_session: ifPresent('sessionIds'),
  },
  workspaces: {
    // Finds workspaces whose retention sweep is due. Indexes `by_review` and `by_postponement` find old data.
    due: by('sweepAt'),
  },
  erasures: {
    by_epoch: ifPresent('epochs'),
    by_workspace: [{ workspaceId: 1, finishedAt: 1 }],
    due: ifPresent('nextAt'),
    by_visitor: ifPresent('traces.visitorIds'),
  },
  visitors: {
    by_connection: ifPresent('connectionId'),
    by_workspace: ifPresent('workspaceId'),
  },
  subjects: { by_conversation: by('conversationId') },
  removals: {
    due: by('nextAt'),
    by_workspace: [{ workspaceId: 1, stage: 1 }],
  },
  operatorPresence: { expiry: endingAt('until') },
  searchEntries: {
    // Finds and counts search entries by their words. The queries name their index.
    by_term: [{ workspaceId: 1, terms: 1 }],
    by_time: [{ workspaceId: 1, at: -1, _id: -1 }],
    // Finds entries of sessions and leads. Those of messages and notes have ids that begin with the conversation id.
    by_conversation: where('conversationId'),
  },
  feedEntries: {
    // Allows one entry per place of a feed, and one per event.
    by_number: [{ workspaceId: 1, number: 1 }, unique],
    by_source: [{ workspaceId: 1, source: 1 }, uniqueIn('source')],
    by_conversation: [{ conversationId: 1, sequence: 1 }, having('conversationId')],
    by_lead: where('leadId'),
    // Not a TTL index: the last entry of a feed must stay, because its number would be given again.
    by_age: by('storedAt'),
  },
}

/** The indexes of each collection, as `createIndexes` takes them. */
export const indexes = Object.entries(plans).map(([collection, named]) => ({
  collection,
  wanted: Object.entries(named).map(([name, [key, options]]) => ({ name, key, ...options })),
}))
