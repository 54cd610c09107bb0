import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import { isRecorded, type RecordsOperations, recording, unlessRecorded } from '../idempotency/recorded-operations.ts'

export type SubscriptionStatus = 'enabled' | 'disabled'
export type DisabledReason = 'operator' | 'rejected_auth' | 'gone'

/** A signing secret of a subscription. */
export interface WebhookSecret {
  secretId: string
  sealed: string
  /** Its first characters, so that operators can identify it. */
  hint: string
  createdAt: Date
  /** Set when it is rotated out. */
  expiresAt?: Date
}

export interface SubscriptionAuditEntry {
  at: Date
  actor: string
  action: 'created' | 'updated' | 'enabled' | 'disabled' | 'secret_rotated' | 'attempt_created' | 'attempt_retried'
  attemptId?: string
  disabledReason?: DisabledReason
}

/** Where a workspace's leads are sent, and which fields the destination receives. */
export interface LeadSubscription {
  subscriptionId: string
  workspaceId: string
  destinationUrl: string
  mappedFields: string[]
  automatic: boolean
  status: SubscriptionStatus
  disabledReason?: DisabledReason
  /** Newest first. */
  secrets: WebhookSecret[]
  /** Consecutive attempts that the destination answered with 404. */
  notFound: string[]
  /** Time of the last change that matters. Answers to attempts sent before it do not count. */
  judgedSince: Date
  /** Changes of the subscription itself, newest first. */
  audit: SubscriptionAuditEntry[]
  createdAt: Date
  updatedAt: Date
}

export type LeadSubscriptionDocument = Omit<LeadSubscription, 'subscriptionId'> & { _id: string } & RecordsOperations

export type SubscriptionChanges = Partial<
  Pick<LeadSubscription, 'destinationUrl' | 'mappedFields' | 'automatic' | 'judgedSince'>
>

/** How many changes are kept per subscription. */
export const auditMax = 100

export interface LeadSubscriptionStore {
  /** Changes nothing if the subscription exists. */
  insert(subscription: LeadSubscription): Promise<void>
  find(subscriptionIds: string[]): Promise<LeadSubscription[]>
  /** Newest first. */
  list(workspaceId: string, limit: number): Promise<LeadSubscription[]>
  /** Subscriptions that receive every captured lead of the workspace. */
  automatic(workspaceId: string): Promise<LeadSubscription[]>
  /** Sets only the given fields. Changes nothing if the operation is recorded. */
  update(
    subscriptionId: string,
    changes: SubscriptionChanges,
    entry: SubscriptionAuditEntry,
    operation: string,
  ): Promise<void>
  /**
   * Returns false and changes nothing if the secrets differ from those that the caller read.
   * Returns true if the operation is applied, now or earlier.
   */
  replaceSecrets(
    subscription: LeadSubscription,
    secrets: WebhookSecret[],
    entry: SubscriptionAuditEntry,
    operation: string,
  ): Promise<boolean>
  /** Changes nothing if it is enabled or the operation is recorded. */
  enable(subscriptionId: string, entry: SubscriptionAuditEntry, operation: string): Promise<void>
  /**
   * Changes nothing if it is disabled, the operation is recorded, or the subscription changed since
   * `sentAt`, when the attempt that disables it began.
   */
  disable(
    subscriptionId: string,
    reason: DisabledReason,
    entry: SubscriptionAuditEntry,
    cause: { sentAt: Date } | { operation: string },
  ): Promise<boolean>
  /** Counts a 404, once per attempt. Returns the number in a row. */
  countNotFound(subscriptionId: string, attemptId: string, sentAt: Date): Promise<number>
  /** Resets the count after an answer other than 404. */
  resetNotFound(subscriptionIds: string[]): Promise<void>
}

export function createLeadSubscriptionStore({
  leadSubscriptions,
}: {
  leadSubscriptions: Collection<LeadSubscriptionDocument>
}): LeadSubscriptionStore {
  const audited = (entry: SubscriptionAuditEntry) => ({
    audit: { $each: [entry], $position: 0, $slice: auditMax },
  })

  return {
    async insert({ subscriptionId, ...rest }) {
      await leadSubscriptions.insertOne({ _id: subscriptionId, ...rest }).catch((error: unknown) => {
        if (!isDuplicateKey(error)) throw error
      })
    },

    async find(subscriptionIds) {
      return (await leadSubscriptions.find({ _id: { $in: subscriptionIds } }).toArray()).map(toSubscription)
    },

    async list(workspaceId, limit) {
      const found = leadSubscriptions.find({ workspaceId }).sort({ createdAt: -1, _id: -1 }).limit(limit)
      return (await found.toArray()).map(toSubscription)
    },

    async automatic(workspaceId) {
      return (await leadSubscriptions.find({ workspaceId, automatic: true }).toArray()).map(toSubscription)
    },

    async update(subscriptionId, changes, entry, operation) {
      await leadSubscriptions.updateOne(
        { _id: subscriptionId, ...unlessRecorded(operation) },
        {
          $set: { ...changes, ...(changes.judgedSince && { notFound: [] }), updatedAt: entry.at },
          $push: { ...audited(entry), ...recording(operation) },
        },
      )
    },

    async replaceSecrets({ subscriptionId, secrets: read }, secrets, entry, operation) {
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, secrets: { $eq: read }, ...unlessRecorded(operation) },
        {
          $set: { secrets, judgedSince: entry.at, updatedAt: entry.at },
          $push: { ...audited(entry), ...recording(operation) },
        },
      )
      return modifiedCount === 1 || (await isRecorded(leadSubscriptions, subscriptionId, operation))
    },

    async enable(subscriptionId, entry, operation) {
      await leadSubscriptions.updateOne(
        { _id: subscriptionId, status: 'disabled', ...unlessRecorded(operation) },
        {
          $set: { status: 'enabled', notFound: [], judgedSince: entry.at, updatedAt: entry.at },
          $unset: { disabledReason: '' },
          $push: { ...audited(entry), ...recording(operation) },
        },
      )
    },

    async disable(subscriptionId, reason, entry, cause) {
      const isByAnswer = 'sentAt' in cause
      const unless = isByAnswer ? { judgedSince: { $lte: cause.sentAt } } : unlessRecorded(cause.operation)
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, status: 'enabled', ...unless },
        {
          $set: { status: 'disabled', disabledReason: reason, updatedAt: entry.at },
          $push: { ...audited(entry), ...(isByAnswer ? {} : recording(cause.operation)) },
        },
      )
      return modifiedCount === 1
    },

    async countNotFound(subscriptionId, attemptId, sentAt) {
      const found = await leadSubscriptions.findOneAndUpdate(
        { _id: subscriptionId, status: 'enabled', judgedSince: { $lte: sentAt } },
        { $addToSet: { notFound: attemptId } },
        { returnDocument: 'after', projection: { notFound: 1 } },
      )
      return found?.notFound.length ?? 0
    },

    async resetNotFound(subscriptionIds) {
      await leadSubscriptions.updateMany(
        { _id: { $in: subscriptionIds }, 'notFound.0': { $exists: true } },
        { $set: { notFound: [] } },
      )
    },
  }
}

export const toSubscription = ({ _id, operations: _, ...rest }: LeadSubscriptionDocument): LeadSubscription => ({
  subscriptionId: _id,
  ...rest,
})
