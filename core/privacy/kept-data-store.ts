import type { DeliveryDocument } from '../deliveries/model.ts'
import type { Session } from '../sessions/model.ts'
import type { PrivacyCollections } from './visitor-data-store.ts'

/** Changes what stays when sessions, conversations, deliveries or visitors are removed. */
export function createKeptDataStore(
  collections: Pick<
    PrivacyCollections,
    'sessions' | 'subjects' | 'conversations' | 'events' | 'leads' | 'leadSubscriptions'
  > & { consents: { keepLatest(session: Session, removedIds: string[]): Promise<void> } },
) {
  const { sessions, subjects, conversations, events, leads, leadSubscriptions, consents } = collections

  return {
    /**
     * Moves the latest decision on consent to another session. Stores the id of a verified visitor in
     * the anonymous sessions of the same browser, so that an erasure of the visitor finds them.
     */
    async keepLinks(removed: Session[]): Promise<void> {
      const sessionIds = removed.map(({ sessionId }) => sessionId)
      for (const session of removed) {
        await consents.keepLatest(session, sessionIds)
        const { sessionId, visitorId, identity } = session
        if (!identity) continue
        await sessions.updateMany(
          { visitorId, identity: { $exists: false }, _id: { $ne: sessionId } },
          { $addToSet: { linkedSubjectIds: identity.subjectId } },
        )
      }
    },

    /** Stores the ids of the visitors in the leads of removed conversations, so that their erasure finds them. */
    async detachLeads(removed: Session[]): Promise<void> {
      const conversationIds = removed.map(({ conversationId }) => conversationId)
      const kept = await leads.distinct('conversationId', { conversationId: { $in: conversationIds } })
      for (const conversationId of kept as string[]) {
        const theirs = removed.filter((session) => session.conversationId === conversationId)
        const visitorIds = [...new Set(theirs.map(({ identity, visitorId }) => identity?.subjectId ?? visitorId))]
        // The operation key of a form contains the id of its session. The key is no longer needed:
        // no form can be repeated after its conversation was removed.
        const references = { conversationId: '', operationKey: '', inputHash: '' } as const
        await leads.updateMany({ conversationId }, { $set: { visitorIds }, $unset: references })
      }
    },

    /** Removes the references of lead subscriptions to the attempts of these deliveries. */
    async removeAttemptReferences(found: Pick<DeliveryDocument, 'subscriptionId' | 'attempts'>[]): Promise<void> {
      const attemptIds = found.flatMap(({ attempts }) => attempts.map(({ attemptId }) => attemptId))
      await leadSubscriptions.updateMany(
        { _id: { $in: [...new Set(found.map(({ subscriptionId }) => subscriptionId))] } },
        { $pull: { notFound: { $in: attemptIds } }, $unset: { 'audit.$[entry].attemptId': '' } },
        { arrayFilters: [{ 'entry.attemptId': { $in: attemptIds } }] },
      )
    },

    /**
     * Removes the references to a session from its conversation. If it is the conversation's last
     * session, `lastSessionId` takes its place. Its events, except messages, become transient: their
     * sweep removes them, but never the end of the log.
     */
    async detachSession({ sessionId, conversationId }: Session, lastSessionId: string): Promise<void> {
      await conversations.updateOne(
        { _id: conversationId, 'lastSession.sessionId': sessionId },
        { $set: { 'lastSession.sessionId': lastSessionId } },
      )
      await events.updateMany(
        { conversationId, sessionId, message: { $exists: false } },
        {
          $set: { transient: true, removableAt: new Date(0) },
          // The sweep keeps the last event of the log, so this event must not contain the session id.
          $unset: { sessionId: '', operationKey: '', inputHash: '', data: '' },
        },
      )
    },

    /**
     * Removes the id of an erasure that is about to finish from sessions and verified visitors. Those
     * that began during the erasure have its id, so that the erasure skips them.
     */
    async forgetErasure(erasureId: string, visitorIds: string[]): Promise<void> {
      const theirs = { $in: visitorIds }
      for (const field of ['afterErasures', 'joinedAfterErasures'])
        for (const visitor of ['visitorId', 'identity.subjectId'])
          await sessions.updateMany({ [visitor]: theirs, [field]: erasureId }, { $pull: { [field]: erasureId } })
      await subjects.updateMany({ _id: theirs }, { $pull: { afterErasures: erasureId } })
    },
  }
}
