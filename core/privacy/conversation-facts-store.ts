import type { Collection } from 'mongodb'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { LeadDocument } from '../leads/model.ts'
import type { EventDocument } from '../log/event-store.ts'
import type { Session } from '../sessions/model.ts'
import { type SessionDocument, toSession } from '../sessions/session-store.ts'
import type { ConversationFacts } from './model.ts'

export type ConversationFactsStore = ReturnType<typeof createConversationFactsStore>

/** Reads the facts that decide whether conversations and sessions are older than allowed. */
export function createConversationFactsStore({
  conversations,
  sessions,
  events,
  leads,
}: {
  conversations: Collection<ConversationDocument>
  sessions: Collection<SessionDocument>
  events: Collection<EventDocument>
  leads: Collection<LeadDocument>
}) {
  async function lastMessage(conversationId: string) {
    const [found] = await events
      .find({ conversationId, message: { $exists: true } }, { projection: { occurredAt: 1, sequence: 1 } })
      .sort({ sequence: -1 })
      .limit(1)
      .toArray()
    return found
  }

  return {
    /**
     * Returns facts from the logs, the sessions and the leads. Skips conversations that do not exist.
     */
    async factsOf(conversationIds: string[]): Promise<ConversationFacts[]> {
      const theirs = { conversationId: { $in: conversationIds } }
      const [found, ends, ofThem, withLeads] = await Promise.all([
        conversations.find({ _id: { $in: conversationIds } }, { projection: { createdAt: 1 } }).toArray(),
        // With this sort order the database jumps in the index from one log's end to the next.
        events
          .aggregate<{ _id: string; occurredAt: Date; messageId: string | null }>([
            { $match: theirs },
            { $sort: { conversationId: -1, sequence: -1 } },
            {
              $group: {
                _id: '$conversationId',
                occurredAt: { $first: '$occurredAt' },
                messageId: { $first: '$message.messageId' },
              },
            },
          ])
          .toArray(),
        sessions.find(theirs, { projection: { conversationId: 1, grantExpiresAt: 1, renewableUntil: 1 } }).toArray(),
        leads.distinct('conversationId', theirs),
      ])
      const endOf = new Map(ends.map((end) => [end._id, end]))
      const expiries = Map.groupBy(ofThem, ({ conversationId }) => conversationId)
      return Promise.all(
        found.map(async ({ _id, createdAt }) => {
          const end = endOf.get(_id)
          const lastMessageAt = end?.messageId ? end.occurredAt : end && (await lastMessage(_id))?.occurredAt
          const times = (expiries.get(_id) ?? []).map((session) => session.renewableUntil.getTime())
          return {
            conversationId: _id,
            hasMessage: lastMessageAt !== undefined,
            hasLead: withLeads.includes(_id),
            lastActivityAt: new Date(Math.max(createdAt.getTime(), lastMessageAt?.getTime() ?? 0, ...times)),
          }
        }),
      )
    },

    /** Repairs the inbox if it lacks the last message of a conversation. */
    async repairInbox(conversationId: string): Promise<void> {
      const message = await lastMessage(conversationId)
      if (!message) return
      const { occurredAt: lastMessageAt, sequence: lastSequence } = message
      await conversations.updateOne({ _id: conversationId }, { $max: { lastMessageAt, lastSequence } })
    },

    sessionsOf: async (conversationIds: string[]): Promise<Session[]> =>
      (await sessions.find({ conversationId: { $in: conversationIds } }).toArray()).map(toSession),

    /**
     * Returns what these sessions wrote in the conversation. `form` means a form but no message.
     * Leaves out sessions that wrote nothing.
     */
    async writersIn(conversationId: string, among: Session[]): Promise<Map<string, 'message' | 'form'>> {
      const ids = among.map(({ sessionId }) => sessionId)
      const [authors, forms] = await Promise.all([
        events.distinct('message.sessionId', { conversationId, 'message.sessionId': { $in: ids } }),
        leads.find({ conversationId }, { projection: { operationKey: 1 } }).toArray(),
      ])
      // The operation key of a form begins with a session id. For an identified session, this is
      // the id of the anonymous session before it.
      const submitters = new Set(forms.map(({ operationKey }) => operationKey?.split(' ')[0]))
      const submitted = among.filter(({ sessionId, operationSessionId }) =>
        [sessionId, operationSessionId].some((id) => id !== undefined && submitters.has(id)),
      )
      return new Map([
        ...submitted.map(({ sessionId }) => [sessionId, 'form'] as const),
        ...(authors as string[]).map((sessionId) => [sessionId, 'message'] as const),
      ])
    },
  }
}
