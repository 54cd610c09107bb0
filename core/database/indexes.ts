import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import type { Collections } from './collections.ts'

const unique: CreateIndexesOptions = { unique: true }
const sparse: CreateIndexesOptions = { sparse: true }
const expiry: CreateIndexesOptions = { expireAfterSeconds: 0 }

/** An index of the documents in which the field has this value; by default, of those that have the field. */
const having = (field: string, value: unknown = { $exists: true }): CreateIndexesOptions => ({
  partialFilterExpression: { [field]: value },
})
const uniqueIn = (field: string) => ({ ...having(field), ...unique })

const plans: {
  [Name in keyof Collections]?: Record<string, [keys: IndexSpecification, options?: CreateIndexesOptions]>
} = {
  events: {
    // Allows one event per conversation and sequence, and sorts a log by sequence.
    by_sequence: [{ conversationId: 1, sequence: 1 }, unique],
    // Allows one event per logical operation.
    by_operation: [{ conversationId: 1, operationKey: 1 }, uniqueIn('operationKey')],
    // Not a TTL index: the last event of a log must stay, because its sequence would be assigned again.
    by_removal: [{ removableAt: 1 }, having('removableAt')],
    unapplied_by_conversation: [{ unapplied: 1, conversationId: 1 }, having('unapplied', true)],
    // Finds the messages that grow, and those that have ended without their event.
    growing: [{ 'growth.until': 1 }, having('growth.until')],
  },
  conversations: {
    by_activity: [{ workspaceId: 1, lastMessageAt: -1, _id: -1 }],
    // The operators' queues. Their queries name this index, for the same reason as those of deliveries.
    by_waiting: [{ workspaceId: 1, 'queue.waitingSince': 1, _id: 1 }, having('queue.waitingSince')],
    by_mail: [{ 'mail.dueAt': 1 }, having('mail.dueAt')],
    by_unseen: [{ unseenAt: 1 }, having('unseenAt')],
    by_openness: [{ workspaceId: 1, 'queue.open': 1, 'assignment.agent.displayName': 1 }, having('queue.open', true)],
    by_assignee: [{ workspaceId: 1, 'queue.open': 1, 'assignment.operator': 1 }, having('queue.open', true)],
    by_tag: [{ workspaceId: 1, 'tags.names': 1, lastMessageAt: -1, _id: -1 }, having('tags.names')],
    by_tag_change: [{ workspaceId: 1, 'tags.at': -1 }, having('tags.at')],
    unannounced_tags: [{ 'tags.announced': 1 }, having('tags.announced', false)],
    unannounced: [{ 'assignment.announced': 1 }, having('assignment.announced', false)],
    unannounced_bots: [{ 'bots.announced': 1 }, having('bots.announced', false)],
    by_postponement: [{ connectionId: 1, postponedUntil: 1 }, having('postponedUntil')],
    by_review: [{ connectionId: 1, reviewAt: 1 }],
    by_epoch: [{ epoch: 1 }],
  },
  typing: { by_end: [{ endsAt: 1 }] },
  leads: {
    // Allows one lead per submitted form.
    by_operation: [{ operationKey: 1 }, uniqueIn('operationKey')],
    by_capture: [{ workspaceId: 1, createdAt: -1, _id: -1 }],
    by_fan_out: [{ 'fanOut.since': 1 }, having('fanOut.since')],
    by_contact: [{ contacts: 1 }, having('contacts')],
    by_conversation: [{ conversationId: 1 }, having('conversationId')],
    by_visitor: [{ visitorIds: 1 }, sparse],
    unannounced: [{ unannounced: 1 }, having('unannounced', true)],
  },
  leadSubscriptions: {
    by_workspace: [{ workspaceId: 1, createdAt: -1, _id: -1 }],
    // Limits the number of hooks and lead subscriptions, also for parallel calls.
    by_place: [{ workspaceId: 1, place: 1 }, uniqueIn('place')],
    by_notice: [{ 'notices.at': 1 }, having('notices.at')],
    by_recovery: [{ 'recovery.nextStepAt': 1 }, having('recovery.nextStepAt')],
    // This index and the next one find the destinations that the metrics count.
    by_disabled: [{ disabledReason: 1 }, having('disabledReason')],
    by_failing: [{ failingSince: 1 }, having('failingSince')],
    // Finds the destinations that receive events of a workspace's feed.
    by_feed: [{ workspaceId: 1, followedTo: 1 }, having('followedTo', { $gte: 0 })],
  },
  deliveries: {
    // Allows one operation per key. An operation creates or retries an attempt.
    by_operation: [{ 'operations.key': 1 }, unique],
    by_attempt: [{ 'attempts.attemptId': 1 }],
    by_lead: [{ leadId: 1, createdAt: -1, _id: -1 }],
    by_conversation: [{ conversationId: 1 }, having('conversationId')],
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
    expiry: [{ deleteAt: 1 }, expiry],
    unannounced: [{ unannounced: 1 }, having('unannounced', true)],
  },
  sessions: {
    by_visitor: [{ visitorId: 1, status: 1 }],
    by_subject: [{ 'identity.subjectId': 1, status: 1 }, having('identity.subjectId')],
    by_consent: [{ 'identity.subjectId': 1, publicSiteKey: 1, 'consents.decidedAt': -1 }, having('consents')],
    by_review: [{ publicSiteKey: 1, reviewAt: 1 }],
    by_postponement: [{ publicSiteKey: 1, postponedUntil: 1 }, having('postponedUntil')],
    by_linked_subject: [{ linkedSubjectIds: 1 }, sparse],
    by_conversation: [{ conversationId: 1 }],
  },
  suppressions: {
    by_workspace: [{ workspaceId: 1, addedAt: -1, _id: -1 }],
    unswept: [{ unswept: 1 }, sparse],
  },
  pictures: {
    by_owner: [{ workspaceId: 1, owner: 1 }],
    expiry: [{ deleteAt: 1 }, expiry],
  },
  tokens: {
    by_use: [{ listedAt: -1, _id: -1 }],
    by_workspace: [{ workspaceId: 1, listedAt: -1, _id: -1 }],
    by_revocation: [{ revokedAt: 1 }, having('revokedAt')],
    expiry: [{ removeAt: 1 }, expiry],
  },
  policyChanges: {
    by_workspace: [{ workspaceId: 1, at: -1, _id: -1 }],
    by_target: [{ target: 1, at: -1, _id: -1 }],
  },
  networkBans: {
    by_network: [{ network: 1, endsAt: 1 }],
    by_visitor: [{ visitorIds: 1 }],
    expiry: [{ endsAt: 1 }, expiry],
  },
  consoleSessions: {
    expiry: [{ expiresAt: 1 }, expiry],
    by_workspace: [{ workspaceId: 1 }],
    by_recheck: [{ 'provider.recheckAt': 1 }, having('provider.recheckAt')],
  },
  signInAttempts: { expiry: [{ expiresAt: 1 }, expiry] },
  signInLinks: {
    expiry: [{ expiresAt: 1 }, expiry],
    by_workspace: [{ workspaceId: 1 }],
  },
  teams: {
    by_mail: [{ 'members.mail': 1 }],
    by_notifications: [{ 'members.notifications.isOn': 1 }, sparse],
  },
  passkeys: { by_operator: [{ workspaceId: 1, operator: 1 }] },
  nonces: { expiry: [{ expiresAt: 1 }, expiry] },
  installations: {
    by_origin: [{ origins: 1 }],
    by_workspace: [{ workspaceId: 1 }],
  },
  connections: { by_workspace: [{ workspaceId: 1 }] },
  commands: {
    // Allows one command per session and operation id, which the operator chooses.
    by_operation: [{ sessionId: 1, operationId: 1 }, unique],
    by_session: [{ sessionId: 1, requestedAt: -1, _id: -1 }],
    by_state: [{ state: 1, expiresAt: 1 }],
    by_upload: [{ 'uploads.startedAt': 1 }, sparse],
    // Not a TTL index, because a command's screenshot must be deleted together with the command.
    by_deletion: [{ deleteAt: 1 }],
  },
  idempotency: {
    expiry: [{ expiresAt: 1 }, expiry],
    // The erasure of a visitor removes the records of the visitor's sessions.
    by_session: [{ sessionIds: 1 }, sparse],
  },
  workspaces: {
    // Finds workspaces whose retention sweep is due. Indexes `by_review` and `by_postponement` find old data.
    due: [{ sweepAt: 1 }],
  },
  erasures: {
    by_epoch: [{ epochs: 1 }, sparse],
    by_workspace: [{ workspaceId: 1, finishedAt: 1 }],
    due: [{ nextAt: 1 }, sparse],
    by_visitor: [{ 'traces.visitorIds': 1 }, sparse],
  },
  visitors: {
    by_connection: [{ connectionId: 1 }, sparse],
    by_workspace: [{ workspaceId: 1 }, sparse],
  },
  subjects: { by_conversation: [{ conversationId: 1 }] },
  removals: {
    due: [{ nextAt: 1 }],
    by_workspace: [{ workspaceId: 1, stage: 1 }],
  },
  operatorPresence: { expiry: [{ until: 1 }, expiry] },
  searchEntries: {
    // Finds and counts search entries by their words. The queries name their index.
    by_term: [{ workspaceId: 1, terms: 1 }],
    by_time: [{ workspaceId: 1, at: -1, _id: -1 }],
    // Finds entries of sessions and leads. Those of messages and notes have ids that begin with the conversation id.
    by_conversation: [{ conversationId: 1 }, having('conversationId')],
  },
  feedEntries: {
    // Allows one entry per place of a feed, and one per event.
    by_number: [{ workspaceId: 1, number: 1 }, unique],
    by_source: [{ workspaceId: 1, source: 1 }, uniqueIn('source')],
    by_conversation: [{ conversationId: 1, sequence: 1 }, having('conversationId')],
    by_lead: [{ leadId: 1 }, having('leadId')],
    // Not a TTL index: the last entry of a feed must stay, because its number would be given again.
    by_age: [{ storedAt: 1 }],
  },
}

/** The indexes of each collection, as `createIndexes` takes them. */
export const indexes = Object.entries(plans).map(([collection, named]) => ({
  collection,
  wanted: Object.entries(named).map(([name, [key, options]]) => ({ name, key, ...options })),
}))
