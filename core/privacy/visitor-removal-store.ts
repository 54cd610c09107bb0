import { MongoServerError } from 'mongodb'
import type { Collections } from '../database/database.ts'
import type { VisitorTraces } from './visitor-traces-store.ts'

export interface VisitorRemoval {
  /** Hides the conversations from operators. */
  hideConversations(conversationIds: string[]): Promise<void>
  /** Stops further uploads, so that all files are known. */
  stopUploads(sessionIds: string[]): Promise<void>
  /**
   * Removes everything except the files. After an interruption, a call with the same traces removes
   * the rest.
   */
  remove(traces: VisitorTraces, until: Date): Promise<void>
  /**
   * Removes a finished erasure from the sessions and subjects that began while it was under way.
   */
  forgetErasure(erasureId: string, visitorIds: string[]): Promise<void>
}

/** Removes a visitor from every collection. */
export function createVisitorRemoval(collections: Collections): VisitorRemoval {
  const { sessions, visitors, subjects, conversations, events, typing } = collections
  const { idempotency, commands, leads, leadSubscriptions, deliveries, wakeups } = collections

  /** Removes deliveries, and the references to their attempts in lead subscriptions. */
  async function removeDeliveries(leadIds: string[]) {
    const found = await deliveries
      .find({ leadId: { $in: leadIds } }, { projection: { subscriptionId: 1, 'attempts.attemptId': 1 } })
      .toArray()
    if (found.length > 0) {
      const attemptIds = found.flatMap(({ attempts }) => attempts.map(({ attemptId }) => attemptId))
      await leadSubscriptions.updateMany(
        { _id: { $in: found.map(({ subscriptionId }) => subscriptionId) } },
        { $pull: { notFound: { $in: attemptIds } }, $unset: { 'audit.$[entry].attemptId': '' } },
        { arrayFilters: [{ 'entry.attemptId': { $in: attemptIds } }] },
      )
    }
    await deliveries.deleteMany({ leadId: { $in: leadIds } })
  }

  /** Keeps the ban of a browser that has sessions of another person. */
  async function removeVisitors({ visitorIds, sessionIds }: VisitorTraces, until: Date) {
    const others = await sessions.distinct('visitorId', {
      visitorId: { $in: visitorIds },
      _id: { $nin: sessionIds },
    })
    const unused = visitorIds.filter((id) => !others.includes(id))
    await visitors.deleteMany({
      _id: { $in: unused },
      $or: [{ bannedAt: { $lte: until } }, { bannedAt: { $exists: false } }],
    })
  }

  /**
   * Removes wake-ups. A server that does not allow deletes in a capped collection overwrites them
   * in time.
   */
  async function removeWakeups({ sessionIds, conversationIds }: VisitorTraces) {
    const ids = [...sessionIds, ...conversationIds]
    try {
      await wakeups.deleteMany({
        $or: [{ changed: { $in: ids } }, { heads: { $elemMatch: { $elemMatch: { $in: ids } } } }],
      })
    } catch (error) {
      if (!(error instanceof MongoServerError && error.codeName === 'IllegalOperation')) throw error
    }
  }

  return {
    async hideConversations(conversationIds) {
      await conversations.updateMany({ _id: { $in: conversationIds } }, { $set: { erasing: true } })
    },

    async stopUploads(sessionIds) {
      await commands.updateMany({ sessionId: { $in: sessionIds } }, { $set: { state: 'cancelled' } })
    },

    async remove(traces, until) {
      const { sessionIds, conversationIds, commandIds, leadIds, visitorIds } = traces
      await removeDeliveries(leadIds)
      await leads.deleteMany({ _id: { $in: leadIds } })
      await commands.deleteMany({ _id: { $in: commandIds } })
      await idempotency.deleteMany({ sessionIds: { $in: sessionIds } })
      await typing.deleteMany({ conversationId: { $in: conversationIds } })
      await events.deleteMany({ conversationId: { $in: conversationIds } })
      await conversations.deleteMany({ _id: { $in: conversationIds } })
      await subjects.deleteMany({ _id: { $in: visitorIds }, conversationId: { $in: conversationIds } })
      // The previous session in the same browser may belong to another person.
      await sessions.updateMany(
        { visitorId: { $in: visitorIds }, 'successor.sessionId': { $in: sessionIds } },
        { $unset: { successor: '' } },
      )
      await removeVisitors(traces, until)
      await sessions.deleteMany({ _id: { $in: sessionIds } })
      await removeWakeups(traces)
    },

    async forgetErasure(erasureId, visitorIds) {
      const theirs = { $in: visitorIds }
      for (const field of ['afterErasures', 'joinedAfterErasures'])
        for (const visitor of ['visitorId', 'identity.subjectId'])
          await sessions.updateMany({ [visitor]: theirs, [field]: erasureId }, { $pull: { [field]: erasureId } })
      await subjects.updateMany({ _id: theirs }, { $pull: { afterErasures: erasureId } })
    },
  }
}
