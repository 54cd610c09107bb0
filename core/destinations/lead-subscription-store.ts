import { randomInt, randomUUID } from 'node:crypto'
import type { Collection, Filter } from 'mongodb'
import { insertOnce } from '../mongodb/insert-each.ts'
import { isRecorded, type RecordsOperations, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import {
  auditMax,
  type DisabledReason,
  defaultDisableAfterNotFound,
  disabledByService,
  type LeadSubscription,
  type SubscriptionAuditEntry,
  type SubscriptionChanges,
  type SubscriptionNotice,
  type SubscriptionStatus,
} from './model.ts'
import { isHook } from './policy-model.ts'
import type { WebhookSecret } from './secrets-model.ts'

export type LeadSubscriptionDocument = Omit<LeadSubscription, 'subscriptionId'> & {
  _id: string
  /** State of the rate limit (`Rate.freeAt` in `destination-rate.ts`). */
  rateFreeAt?: number
  /** `hook <n>` or `leads <n>`, unique in the workspace. `n` is below the maximum number. */
  place?: string
  /** Set while the subscription is being deleted. Queries then skip it. */
  deleted?: true
} & RecordsOperations

/** Maximum number of notices per subscription that wait for their deliveries. */
const noticesMax = 100
const countedMax = 1_000
const noFailures = { failingSince: '', deadLettersSince: '' } as const

export type ListedDestinations = 'hooks' | 'subscriptions'

const isListedAs: Record<ListedDestinations, Filter<LeadSubscriptionDocument>> = {
  hooks: { resource: 'hook' },
  subscriptions: { $or: [{ resource: { $exists: false } }, { sentAs: { $exists: true } }] },
}

export const notDeleted = { deleted: { $exists: false } } as const

export interface LeadSubscriptionStore {
  /**
   * Inserts a subscription. Changes nothing if the subscription exists. Returns false if the workspace
   * has `max` hooks, or lead subscriptions, already.
   */
  insert(subscription: LeadSubscription, max: number): Promise<boolean>
  find(subscriptionIds: string[]): Promise<LeadSubscription[]>
  /** Returns those of the given ids whose subscription has this status. */
  idsWithStatus(subscriptionIds: string[], status: SubscriptionStatus): Promise<string[]>
  /** Counts the subscriptions that the service has disabled, by reason; at most 1,000 of each. */
  countDisabled(): Promise<Map<DisabledReason, number>>
  /** Returns since when an enabled subscription's destination has accepted nothing: the longest such time. */
  failingSince(): Promise<Date | undefined>
  /**
   * Returns the hooks, or the subscriptions for leads and operational events, newest first, after the
   * given one. Without their audit.
   */
  list(
    workspaceId: string,
    listed: ListedDestinations,
    limit: number,
    after?: { at: Date; id: string },
  ): Promise<LeadSubscription[]>
  /** Returns the subscriptions that receive every captured lead of the workspace. */
  automatic(workspaceId: string): Promise<LeadSubscription[]>
  /**
   * Sets only the given fields. Changes nothing if the operation is already recorded. Returns false
   * if the changes concern destination or headers, and another write has changed one of these since
   * `read`.
   */
  update(
    read: LeadSubscription,
    changes: SubscriptionChanges,
    entry: SubscriptionAuditEntry,
    operation: string,
  ): Promise<boolean>
  /**
   * Replaces the secrets if they have not changed since the caller read them. Returns true if this
   * call or an earlier run of the operation replaced them.
   */
  replaceSecrets(
    subscription: LeadSubscription,
    secrets: WebhookSecret[],
    entry: SubscriptionAuditEntry,
    operation: string,
  ): Promise<boolean>
  /**
   * Enables a subscription. Changes nothing if it is enabled or the operation is already recorded.
   */
  enable(subscriptionId: string, entry: SubscriptionAuditEntry, operation: string): Promise<void>
  /**
   * Disables a subscription, after a request or because of an answer. Changes nothing if it is
   * disabled, if the operation is already recorded, or if the subscription changed since `sentAt`.
   * `sentAt` is the start of the attempt that got the answer. A rejected signature also changes
   * nothing if the overlap of two secrets had not ended at that time. With `failingBefore`, also
   * changes nothing if the failures began after that time. The same write stores a notice for the
   * event feed.
   */
  disable(
    subscriptionId: string,
    reason: DisabledReason,
    entry: SubscriptionAuditEntry,
    cause: { sentAt: Date } | { failingBefore: Date } | { operation: string },
  ): Promise<boolean>
  /**
   * Counts a 404 answer, once per attempt. Returns true if the consecutive 404 answers are now as
   * many as disable the subscription.
   */
  countNotFound(subscriptionId: string, attemptId: string, sentAt: Date): Promise<boolean>
  /** Resets the count of consecutive 404 answers. */
  resetNotFound(subscriptionIds: string[]): Promise<void>
  /** Stores the time of the first failed attempt, unless one is stored. */
  markFailing(subscriptionIds: string[], at: Date): Promise<void>
  /** Removes the times of the first failed attempt and the first dead letter, after a success. */
  resetFailures(subscriptionIds: string[]): Promise<void>
  /**
   * Stores the time of the first dead letter and a notice about it. Changes nothing if the time of
   * an earlier dead letter is stored.
   */
  beginDeadLetters(subscriptionId: string, deliveryId: string, at: Date): Promise<void>
  /** Returns subscriptions with notices. */
  withNotices(limit: number): Promise<LeadSubscription[]>
  removeNotices(subscriptionId: string, notices: SubscriptionNotice[]): Promise<void>
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
    async insert({ subscriptionId, ...rest }, max) {
      const places = Array.from({ length: max }, (_, n) => `${isHook(rest) ? 'hook' : 'leads'} ${n}`)
      // If a try fails, a parallel call took the place, or inserted the same subscription.
      for (;;) {
        const placed = { workspaceId: rest.workspaceId, place: { $exists: true } }
        const present = await leadSubscriptions
          .find({ $or: [{ _id: subscriptionId }, placed] }, { projection: { place: 1 } })
          .toArray()
        if (present.some(({ _id }) => _id === subscriptionId)) return true
        const taken = new Set(present.map(({ place }) => place))
        const free = places.filter((place) => !taken.has(place))
        if (free.length === 0) return false
        const place = free[randomInt(free.length)]
        if (await insertOnce(leadSubscriptions, { _id: subscriptionId, ...rest, place })) return true
      }
    },

    async find(subscriptionIds) {
      return (await leadSubscriptions.find({ _id: { $in: subscriptionIds }, ...notDeleted }).toArray()).map(
        toSubscription,
      )
    },

    async idsWithStatus(subscriptionIds, status) {
      if (subscriptionIds.length === 0) return []
      const found = await leadSubscriptions
        .find({ _id: { $in: subscriptionIds }, status, ...notDeleted }, { projection: { _id: 1 } })
        .toArray()
      return found.map(({ _id }) => _id)
    },

    async list(workspaceId, listed, limit, after) {
      const older = after && {
        $or: [{ createdAt: { $lt: after.at } }, { createdAt: after.at, _id: { $lt: after.id } }],
      }
      const found = leadSubscriptions
        .find(
          { workspaceId, ...notDeleted, $and: [isListedAs[listed], older ?? {}] },
          { projection: { audit: 0, notices: 0, operations: 0 } },
        )
        .sort({ createdAt: -1, _id: -1 })
        .limit(limit)
      return (await found.toArray()).map(toSubscription)
    },

    async automatic(workspaceId) {
      return (await leadSubscriptions.find({ workspaceId, automatic: true, ...notDeleted }).toArray()).map(
        toSubscription,
      )
    },

    async update(read, changes, entry, operation) {
      const { subscriptionId } = read
      const unchanged = changes.destination || changes.headers ? destinationAsIn(read) : {}
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, ...unchanged, ...unlessRecorded(operation) },
        {
          $set: { ...changes, notFound: changes.judgedSince && [], updatedAt: entry.at },
          $unset: changes.judgedSince && noFailures,
          $push: { ...audited(entry), ...recording(operation) },
        },
      )
      return modifiedCount === 1 || (await isRecorded(leadSubscriptions, subscriptionId, operation))
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
        { _id: subscriptionId, status: 'disabled', ...notDeleted, ...unlessRecorded(operation) },
        {
          $set: { status: 'enabled', notFound: [], judgedSince: entry.at, updatedAt: entry.at },
          $unset: { disabledReason: '', ...noFailures },
          $push: { ...audited(entry), ...recording(operation) },
        },
      )
    },

    async disable(subscriptionId, reason, entry, cause) {
      const unless =
        'sentAt' in cause
          ? { judgedSince: { $lte: cause.sentAt } }
          : 'failingBefore' in cause
            ? { failingSince: { $lte: cause.failingBefore } }
            : unlessRecorded(cause.operation)
      const inOverlap = 'sentAt' in cause &&
        reason === 'rejected_auth' && { 'secrets.expiresAt': { $gt: cause.sentAt } }
      const notice = { noticeId: randomUUID(), at: entry.at, kind: 'subscription.disabled' as const, reason }
      const { modifiedCount } = await leadSubscriptions.updateOne(
        { _id: subscriptionId, status: 'enabled', ...unless, ...(inOverlap && { $nor: [inOverlap] }) },
        {
          $set: { status: 'disabled', disabledReason: reason, updatedAt: entry.at },
          $push: {
            ...audited(entry),
            ...('operation' in cause && recording(cause.operation)),
            notices: { $each: [notice], $slice: -noticesMax },
          },
        },
      )
      return modifiedCount === 1
    },

    async countNotFound(subscriptionId, attemptId, sentAt) {
      const found = await leadSubscriptions.findOneAndUpdate(
        { _id: subscriptionId, status: 'enabled', judgedSince: { $lte: sentAt }, disableAfterNotFound: { $ne: 0 } },
        { $addToSet: { notFound: attemptId } },
        { returnDocument: 'after', projection: { notFound: 1, disableAfterNotFound: 1 } },
      )
      return found !== null && found.notFound.length >= (found.disableAfterNotFound ?? defaultDisableAfterNotFound)
    },

    async resetNotFound(subscriptionIds) {
      await leadSubscriptions.updateMany(
        { _id: { $in: subscriptionIds }, 'notFound.0': { $exists: true } },
        { $set: { notFound: [] } },
      )
    },

    async markFailing(subscriptionIds, at) {
      await leadSubscriptions.updateMany(
        { _id: { $in: subscriptionIds }, failingSince: { $exists: false } },
        { $set: { failingSince: at } },
      )
    },

    async resetFailures(subscriptionIds) {
      await leadSubscriptions.updateMany({ _id: { $in: subscriptionIds } }, { $unset: noFailures })
    },

    async beginDeadLetters(subscriptionId, deliveryId, at) {
      const notice = { noticeId: randomUUID(), at, kind: 'subscription.failing' as const, deliveryId }
      await leadSubscriptions.updateOne(
        { _id: subscriptionId, deadLettersSince: { $exists: false } },
        { $set: { deadLettersSince: at }, $push: { notices: { $each: [notice], $slice: -noticesMax } } },
      )
    },

    async countDisabled() {
      const count = async (disabledReason: DisabledReason) => {
        const options = { limit: countedMax, hint: 'by_disabled' }
        return [
          disabledReason,
          await leadSubscriptions.countDocuments({ disabledReason, ...notDeleted }, options),
        ] as const
      }
      return new Map(await Promise.all(disabledByService.map(count)))
    },

    async failingSince() {
      const failing = { failingSince: { $exists: true }, status: 'enabled' as const, ...notDeleted }
      const options = { projection: { failingSince: 1 }, sort: { failingSince: 1 }, hint: 'by_failing' } as const
      return (await leadSubscriptions.findOne(failing, options))?.failingSince
    },

    async withNotices(limit) {
      const found = leadSubscriptions.find({ 'notices.at': { $exists: true }, ...notDeleted }).limit(limit)
      return (await found.toArray()).map(toSubscription)
    },

    async removeNotices(subscriptionId, notices) {
      const noticeId = { $in: notices.map((notice) => notice.noticeId) }
      await leadSubscriptions.updateOne({ _id: subscriptionId }, { $pull: { notices: { noticeId } } })
    },
  }
}

/** Filter for documents whose destination and headers are the same as in the given subscription. */
const destinationAsIn = ({ destination, headers }: LeadSubscription) => ({
  destination,
  headers: headers ?? { $exists: false },
})

export const toSubscription = ({
  _id,
  operations: _,
  deleted: __,
  rateFreeAt: ___,
  place: ____,
  ...rest
}: LeadSubscriptionDocument): LeadSubscription => ({
  subscriptionId: _id,
  ...rest,
})
