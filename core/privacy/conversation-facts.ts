import type { Core } from '../core.ts'
import type { Session } from '../sessions/model.ts'
import { toSession } from '../sessions/session-store.ts'
import type { ConversationFacts } from './model.ts'

async function lastMessage({ db }: Core, conversationId: string) {
  const [found] = await db.events
    .find({ conversationId, message: { $exists: true } }, { projection: { occurredAt: 1, sequence: 1 } })
    .sort({ sequence: -1 })
    .limit(1)
    .toArray()
  return found
}

/** Reads the logs, the sessions and the leads. Skips conversations that do not exist. */
export async function factsOf(core: Core, conversationIds: string[]): Promise<ConversationFacts[]> {
  const { conversations, events, sessions, leads } = core.db
  const theirs = { conversationId: { $in: conversationIds } }
  const [found, ends, ofThem, withLeads] = await Promise.all([
    conversations.find({ _id: { $in: conversationIds } }, { projection: { createdAt: 1 } }).toArray(),
    // In this order the database jumps in the index from one log's end to the next.
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
      const lastMessageAt = end?.messageId ? end.occurredAt : end && (await lastMessage(core, _id))?.occurredAt
      const times = (expiries.get(_id) ?? []).map((session) => session.renewableUntil.getTime())
      return {
        conversationId: _id,
        hasMessage: lastMessageAt !== undefined,
        hasLead: withLeads.includes(_id),
        lastActivityAt: new Date(Math.max(createdAt.getTime(), lastMessageAt?.getTime() ?? 0, ...times)),
      }
    }),
  )
}

/** Repairs an inbox that lacks the last message of a conversation. */
export async function repairInbox(core: Core, conversationId: string) {
  const message = await lastMessage(core, conversationId)
  if (!message) return
  const { occurredAt: lastMessageAt, sequence: lastSequence } = message
  await core.db.conversations.updateOne({ _id: conversationId }, { $max: { lastMessageAt, lastSequence } })
}

export const sessionsIn = async ({ db }: Core, conversationIds: string[]): Promise<Session[]> =>
  (await db.sessions.find({ conversationId: { $in: conversationIds } }).toArray()).map(toSession)

/** Returns what sessions wrote: `form` means a form but no message. Leaves out those that wrote nothing. */
export async function writersIn(
  { db: { events, leads } }: Core,
  conversationId: string,
  among: Session[],
): Promise<Map<string, 'message' | 'form'>> {
  const ids = among.map(({ sessionId }) => sessionId)
  const [authors, forms] = await Promise.all([
    events.distinct('message.sessionId', { conversationId, 'message.sessionId': { $in: ids } }),
    leads.find({ conversationId }, { projection: { operationKey: 1 } }).toArray(),
  ])
  // The key of a form begins with a session id: for an identified session, the anonymous one before it.
  const submitters = new Set(forms.map(({ operationKey }) => operationKey?.split(' ')[0]))
  const submitted = among.filter(({ sessionId, operationSessionId }) =>
    [sessionId, operationSessionId].some((id) => id !== undefined && submitters.has(id)),
  )
  return new Map([
    ...submitted.map(({ sessionId }) => [sessionId, 'form'] as const),
    ...(authors as string[]).map((sessionId) => [sessionId, 'message'] as const),
  ])
}
