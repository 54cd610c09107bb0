import type { Collection } from 'mongodb'

export type SubscriptionStatus = 'enabled' | 'disabled'
export type DisabledReason = 'operator' | 'rejected_auth' | 'gone'

/** A secret that signs for a destination. */
export interface WebhookSecret {
  secretId: string
  sealed: string
  /** Its first characters, for operators to tell it from others. */
  hint: string
  createdAt: Date
  /** Set once it was rotated out. */
  expiresAt?: Date
}

export interface SubscriptionAuditEntry {
  at: Date
  actor: string
  action: 'created' | 'updated' | 'enabled' | 'disabled' | 'secret_rotated' | 'attempt_created' | 'attempt_retried'
  attemptId?: string
  disabledReason?: DisabledReason
}

/** Where a workspace's leads go, and what the destination gets to see of them. */
export interface LeadSubscription {
  subscriptionId: string
  workspaceId: string
  destinationUrl: string
  mappedFields: string[]
  automatic: boolean
  status: SubscriptionStatus
  disabledReason?: DisabledReason
  /** The newest first. */
  secrets: WebhookSecret[]
  /** Attempts in a row that the destination answered with 404. */
  notFound: string[]
  /** Answers to what was sent before say nothing of the destination as it is set up now. */
  judgedSince: Date
  /** Changes of the subscription itself, the newest first. */
  audit: SubscriptionAuditEntry[]
  createdAt: Date
  updatedAt: Date
}

export type LeadSubscriptionDocument = Omit<LeadSubscription, 'subscriptionId'> & { _id: string }

export type SubscriptionChanges = Partial<
  Pick<LeadSubscription, 'destinationUrl' | 'mappedFields' | 'automatic' | 'secrets' | 'judgedSince'>
>

/** How many changes of a subscription are kept. */
export const auditMax = 100

export interface LeadSubscriptionStore {
  insert(subscription: LeadSubscription): Promise<void>
  find(subscriptionIds: string[]): Promise<LeadSubscription[]>
  /** The newest first. */
  list(workspaceId: string, limit: number): Promise<LeadSubscription[]>
  /** Those that every captured lead of the workspace goes to. */
  automatic(workspaceId: string): Promise<LeadSubscription[]>
  update(subscriptionId: string, changes: SubscriptionChanges, entry: SubscriptionAuditEntry): Promise<void>
  /** Puts other secrets in the place of those that the caller read; false when somebody else did so first. */
  replaceSecrets(
    subscription: LeadSubscription,
    secrets: WebhookSecret[],
    entry: SubscriptionAuditEntry,
  ): Promise<boolean>
  /** Nothing changes where it is enabled. */
  enable(subscriptionId: string, entry: SubscriptionAuditEntry): Promise<void>
  /**
   * Nothing changes where it is disabled, or was set up anew since `sentAt`: the time at which the attempt began whose
   * answer disables it.
   */
  disable(
    subscriptionId: string,
    reason: DisabledReason,
    entry: SubscriptionAuditEntry,
    sentAt?: Date,
  ): Promise<boolean>
  /** Counts a 404, each attempt once; how many there are in a row. */
  countNotFound(subscriptionId: string, attemptId: string, sentAt: Date): Promise<number>
  /** Something else than a 404 came. */
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
      await leadSubscriptions.insertOne({ _id: subscriptionId, ...rest })
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

    async update(subscriptionId, changes, entry) {
      await leadSubscriptions.updateOne(
        { _id: subscriptionId },
        {
          $set: { ...changes, ...(changes.judgedSince && { notFound: [] }), updatedAt: entry.at },
          $push: audited(entry),
        },
      )
    },

    async replaceSecrets({ subscriptionId, secrets: [newest] }, secrets, entry) {
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, 'secrets.0.secretId': newest?.secretId ?? '' },
        { $set: { secrets, judgedSince: entry.at, updatedAt: entry.at }, $push: audited(entry) },
      )
      return modifiedCount === 1
    },

    async enable(subscriptionId, entry) {
      await leadSubscriptions.updateOne(
        { _id: subscriptionId, status: 'disabled' },
        {
          $set: { status: 'enabled', notFound: [], judgedSince: entry.at, updatedAt: entry.at },
          $unset: { disabledReason: '' },
          $push: audited(entry),
        },
      )
    },

    async disable(subscriptionId, reason, entry, sentAt) {
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, status: 'enabled', ...(sentAt && { judgedSince: { $lte: sentAt } }) },
        { $set: { status: 'disabled', disabledReason: reason, updatedAt: entry.at }, $push: audited(entry) },
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

export const toSubscription = ({ _id, ...rest }: LeadSubscriptionDocument): LeadSubscription => ({
  subscriptionId: _id,
  ...rest,
})
