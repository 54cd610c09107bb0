import type { Collection, Filter } from 'mongodb'
import type { DeliveryDocument } from '../deliveries/delivery-store.ts'
import { entriesOf } from '../search/search-entry-store.ts'
import type { Session } from '../visitors/model.ts'
import type { ErasureDocument } from './erasure-store.ts'
import { removeAttemptReferences, type VisitorCollections } from './visitor-data-store.ts'

/**
 * Hides and removes data in small steps. Each call can be repeated, and touches a bounded number of
 * documents.
 */
export interface DataRemoval {
  /** Hides the conversations or leads, except those that another removal has hidden. */
  hide(kind: Hidden, ids: string[], removalId: string): Promise<void>
  /** Returns the ids of the conversations or leads that this removal has hidden. */
  hiddenBy(kind: Hidden, ids: string[], removalId: string): Promise<string[]>
  show(kind: Hidden, ids: string[], removalId: string): Promise<void>
  /**
   * Removes at most `limit` events of the conversations. Returns the number of removed events; 0
   * when none is left.
   */
  removeEvents(conversationIds: string[], limit: number): Promise<number>
  /**
   * Removes at most `limit` deliveries of the leads. Returns the number of removed deliveries; 0
   * when none is left.
   */
  removeDeliveriesOf(leadIds: string[], limit: number): Promise<number>
  /**
   * Removes at most `limit` deliveries of a subscription or a workspace. Returns the number of
   * removed deliveries; 0 when none is left.
   */
  removeDeliveries(of: { subscriptionId: string } | { workspaceId: string }, limit: number): Promise<number>
  removeLeads(leadIds: string[]): Promise<number>
  /**
   * Stores the visitors' ids in the leads of their conversations, so that an erasure finds these
   * leads after the conversation has been removed.
   */
  detachLeads(sessions: Session[]): Promise<void>
  commandsOf(sessionIds: string[]): Promise<{ commandId: string; fileIds: string[] }[]>
  removeCommands(commandIds: string[]): Promise<void>
  /**
   * Stores the id of the session's verified visitor in the anonymous sessions of the same browser.
   * An erasure of that visitor then finds the anonymous sessions even after this session has been
   * removed.
   */
  keepLink(session: Session): Promise<void>
  /**
   * Removes sessions, their idempotency records, and the references of earlier sessions to them.
   */
  removeSessions(sessions: Session[]): Promise<number>
  /**
   * Makes the session's events transient, except messages. The sweep of transient events then
   * removes these events, but never the end of the log. If this is the last session of the
   * conversation, stores `lastSessionId` as the last session.
   */
  detachSession(session: Session, lastSessionId: string): Promise<void>
  /**
   * Removes at most `limit` search entries of the conversations. Returns the number of removed
   * entries; 0 when none is left.
   */
  removeSearchEntries(conversationIds: string[], limit: number): Promise<number>
  /** Removes conversations whose events and sessions have been removed. */
  removeConversations(conversationIds: string[]): Promise<number>
  /**
   * Removes at most `limit` held deliveries that have not changed since `before`. Returns the
   * number of deliveries that it found.
   */
  removeHeld(subscriptionIds: string[], before: Date, limit: number): Promise<number>
  /**
   * Removes audit entries from `before` or earlier. Returns the number of documents that it changed
   * or removed.
   */
  removeAudit(workspaceId: string, subscriptionIds: string[], before: Date, limit: number): Promise<number>
  subscriptionIds(workspaceId: string): Promise<string[]>
}

type Hidden = 'conversations' | 'leads'

const idOnly = { projection: { _id: 1 } } as const
const ids = (found: { _id: string }[]) => found.map(({ _id }) => _id)

export function createDataRemoval(
  collections: VisitorCollections & { erasures: Collection<ErasureDocument> },
): DataRemoval {
  const { sessions, subjects, conversations, events, idempotency } = collections
  const { commands, leads, leadSubscriptions, deliveries, erasures, policyChanges, searchEntries } = collections
  const hideable = { conversations, leads } as unknown as Record<
    Hidden,
    Collection<{ _id: string; erasing?: true | string }>
  >

  async function removeSome(filter: Filter<DeliveryDocument>, limit: number) {
    const found = await deliveries
      .find(filter, { projection: { subscriptionId: 1, 'attempts.attemptId': 1 } })
      .limit(limit)
      .toArray()
    if (found.length === 0) return 0
    await removeAttemptReferences(leadSubscriptions, found)
    // Check the filter again, because a held delivery may have been released after it was found.
    await deliveries.deleteMany({ $and: [{ _id: { $in: ids(found) } }, filter] })
    return found.length
  }

  return {
    async hide(kind, wanted, removalId) {
      const visible = { _id: { $in: wanted }, erasing: { $exists: false } }
      await hideable[kind].updateMany(visible, { $set: { erasing: removalId } })
    },

    async hiddenBy(kind, wanted, removalId) {
      return ids(await hideable[kind].find({ _id: { $in: wanted }, erasing: removalId }, idOnly).toArray())
    },

    async show(kind, wanted, removalId) {
      const hidden = { _id: { $in: wanted }, erasing: removalId }
      await hideable[kind].updateMany(hidden, { $unset: { erasing: '' } })
    },

    async removeEvents(conversationIds, limit) {
      const theirs = { conversationId: { $in: conversationIds } }
      const found = await events
        .find(theirs, { projection: { conversationId: 1 } })
        .limit(limit)
        .toArray()
      if (found.length === 0) return 0
      const among = [...new Set(found.map(({ conversationId }) => conversationId))]
      const { deletedCount } = await events.deleteMany({
        _id: { $in: found.map(({ _id }) => _id) },
        // The shard key, so that only the shards of these conversations run the command.
        conversationId: { $in: among },
      })
      return deletedCount
    },

    removeDeliveriesOf: (leadIds, limit) => removeSome({ leadId: { $in: leadIds } }, limit),

    removeDeliveries: removeSome,

    async removeLeads(leadIds) {
      const { deletedCount } = await leads.deleteMany({ _id: { $in: leadIds } })
      await searchEntries.deleteMany({ _id: { $in: leadIds } })
      return deletedCount
    },

    async detachLeads(ofThem) {
      const conversationIds = ofThem.map(({ conversationId }) => conversationId)
      const kept = await leads.distinct('conversationId', { conversationId: { $in: conversationIds } })
      for (const conversationId of kept as string[]) {
        const theirs = ofThem.filter((session) => session.conversationId === conversationId)
        const visitorIds = [...new Set(theirs.map(({ identity, visitorId }) => identity?.subjectId ?? visitorId))]
        // The operation key of a form contains the id of its session. The key is no longer needed:
        // no form can be repeated after its conversation was removed.
        const references = { conversationId: '', operationKey: '', inputHash: '' } as const
        await leads.updateMany({ conversationId }, { $set: { visitorIds }, $unset: references })
      }
    },

    async commandsOf(sessionIds) {
      const found = await commands
        .find({ sessionId: { $in: sessionIds } }, { projection: { uploads: 1, screenshot: 1 } })
        .toArray()
      return found.map(({ _id, uploads, screenshot }) => ({
        commandId: _id,
        fileIds: [...uploads, ...(screenshot ? [screenshot] : [])].map(({ fileId }) => fileId),
      }))
    },

    async removeCommands(commandIds) {
      await commands.deleteMany({ _id: { $in: commandIds } })
    },

    async keepLink({ sessionId, visitorId, identity }) {
      if (!identity) return
      await sessions.updateMany(
        { visitorId, identity: { $exists: false }, _id: { $ne: sessionId } },
        { $addToSet: { linkedSubjectIds: identity.subjectId } },
      )
    },

    async removeSessions(removed) {
      const sessionIds = removed.map(({ sessionId }) => sessionId)
      const visitorIds = [...new Set(removed.map(({ visitorId }) => visitorId))]
      await idempotency.deleteMany({ sessionIds: { $in: sessionIds } })
      await sessions.updateMany(
        { visitorId: { $in: visitorIds }, 'successor.sessionId': { $in: sessionIds } },
        { $unset: { successor: '' } },
      )
      await policyChanges.updateMany({ target: { $in: sessionIds } }, { $unset: { target: '' } })
      const { deletedCount } = await sessions.deleteMany({ _id: { $in: sessionIds } })
      await searchEntries.deleteMany({ _id: { $in: sessionIds } })
      return deletedCount
    },

    async detachSession({ sessionId, conversationId }, lastSessionId) {
      await conversations.updateOne(
        { _id: conversationId, 'lastSession.sessionId': sessionId },
        { $set: { 'lastSession.sessionId': lastSessionId } },
      )
      await events.updateMany(
        { conversationId, sessionId, message: { $exists: false } },
        {
          $set: { transient: true, removableAt: new Date(0) },
          // The sweep keeps the last event of the log, so this event must not contain the session
          // id.
          $unset: { sessionId: '', operationKey: '', inputHash: '', data: '' },
        },
      )
    },

    async removeSearchEntries(conversationIds, limit) {
      const found = await searchEntries
        .find({ $or: entriesOf(conversationIds) }, idOnly)
        .limit(limit)
        .toArray()
      if (found.length === 0) return 0
      return (await searchEntries.deleteMany({ _id: { $in: ids(found) } })).deletedCount
    },

    async removeConversations(conversationIds) {
      await subjects.deleteMany({ conversationId: { $in: conversationIds } })
      return (await conversations.deleteMany({ _id: { $in: conversationIds } })).deletedCount
    },

    async removeHeld(subscriptionIds, before, limit) {
      return removeSome({ destination: { $in: subscriptionIds }, status: 'held', updatedAt: { $lte: before } }, limit)
    },

    async removeAudit(workspaceId, subscriptionIds, before, limit) {
      const isOld = { $lte: before }
      const { modifiedCount } = await leadSubscriptions.updateMany(
        { workspaceId, 'audit.at': isOld },
        { $pull: { audit: { at: isOld } } },
      )
      const requested = await deliveries
        .find({ destination: { $in: subscriptionIds }, requestedAt: isOld }, idOnly)
        .limit(limit)
        .toArray()
      await deliveries.updateMany(
        { _id: { $in: ids(requested) }, requestedAt: isOld },
        { $unset: { requestedAt: '', 'attempts.$[].requestedBy': '' } },
      )
      const finished = await erasures.find({ workspaceId, finishedAt: isOld }, idOnly).limit(limit).toArray()
      await erasures.deleteMany({ _id: { $in: ids(finished) } })
      const changes = await policyChanges.find({ workspaceId, at: isOld }, idOnly).limit(limit).toArray()
      await policyChanges.deleteMany({ _id: { $in: ids(changes) } })
      return modifiedCount + requested.length + finished.length + changes.length
    },

    async subscriptionIds(workspaceId) {
      return ids(await leadSubscriptions.find({ workspaceId }, idOnly).toArray())
    },
  }
}
