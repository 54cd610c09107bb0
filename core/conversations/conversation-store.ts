import type { Collection } from 'mongodb'
import type { Agent } from '../log/model.ts'

export interface Conversation {
  conversationId: string
  workspaceId: string
  connectionId: string
  /** Identity of the event log. Positions of another epoch are invalid. */
  epoch: string
  createdAt: Date
  /** Fields for the inbox; they follow the log and may lag behind it. */
  lastMessageAt?: Date
  lastSequence?: number
  lastSessionId?: string
  status?: 'open' | 'closed'
  /** Sequence of the last closing. */
  closedSequence?: number
  assignment?: Assignment
}

/** The agent assigned to a conversation. */
export interface Assignment {
  /** Counts the changes. */
  version: number
  agent?: Agent
  /** The agent that an unassignment removed. */
  previous?: Agent
  /** The event of this version is in the log. */
  announced: boolean
}

export type ConversationDocument = Omit<Conversation, 'conversationId' | 'lastSessionId' | 'status'> & {
  _id: string
  /** The session of the last message, with its sequence to tell which is later. */
  lastSession?: { sequence: number; sessionId: string }
  /** An erasure is removing it, so it is no longer returned. */
  erasing?: true
}

const kept = { erasing: { $exists: false } } as const

/** A conversation's latest activity, for the inbox. */
export interface Activity {
  conversationId: string
  lastMessageAt: Date
  lastSequence: number
  /** The session of the last message, with its sequence. */
  lastSession?: { sequence: number; sessionId: string }
}

export interface ConversationStore {
  /** Returns false and changes nothing if it exists. */
  insertOnce(conversation: Conversation): Promise<boolean>
  find(conversationIds: string[]): Promise<Conversation[]>
  recordActivity(activities: Activity[]): Promise<void>
  /** Sets the session that continues the conversation, unless a later one is known. */
  setLastSession(conversationId: string, lastSession: { sequence: number; sessionId: string }): Promise<void>
  /** Records closings from the log. */
  recordClosed(closings: { conversationId: string; sequence: number }[]): Promise<void>
  /** Writes the next version of an assignment; returns false if `from` is not the latest. */
  assign(conversationId: string, from: Assignment | undefined, to: Assignment): Promise<boolean>
  markAnnounced(conversationId: string, version: number): Promise<void>
  /** Conversations whose assignment has no event in the log yet. */
  unannounced(limit: number): Promise<Conversation[]>
  /** Conversations with a message since then, latest first. */
  activeSince(workspaceId: string | undefined, since: Date, limit: number): Promise<Conversation[]>
  /** Conversations with a message, latest first, after a position in that order. */
  listActive(query: {
    workspaceId?: string
    status?: 'open' | 'closed'
    before?: { lastMessageAt: Date; conversationId: string }
    limit: number
  }): Promise<Conversation[]>
}

export function createConversationStore({
  conversations,
}: {
  conversations: Collection<ConversationDocument>
}): ConversationStore {
  return {
    async insertOnce({ conversationId, ...rest }) {
      const { upsertedCount } = await conversations.updateOne(
        { _id: conversationId },
        { $setOnInsert: rest },
        { upsert: true },
      )
      return upsertedCount === 1
    },

    async find(conversationIds) {
      return (await conversations.find({ _id: { $in: conversationIds }, ...kept }).toArray()).map(toConversation)
    },

    async recordActivity(activities) {
      await conversations.bulkWrite(
        activities.map(({ conversationId, lastMessageAt, lastSequence, lastSession }) => ({
          updateOne: {
            // By id alone with `$max`, safe in any order: a condition would cost three times as
            // much.
            filter: { _id: conversationId },
            update: {
              $max: {
                lastMessageAt,
                lastSequence,
                ...(lastSession && { lastSession }),
              },
            },
          },
        })),
        // Derived from the log and repaired after a fault, so it need not wait for the journal.
        { ordered: false, writeConcern: { w: 1 } },
      )
    },

    async setLastSession(conversationId, lastSession) {
      await conversations.updateOne({ _id: conversationId }, { $max: { lastSession } })
    },

    async recordClosed(closings) {
      await conversations.bulkWrite(
        closings.map(({ conversationId, sequence }) => ({
          updateOne: { filter: { _id: conversationId }, update: { $max: { closedSequence: sequence } } },
        })),
        { ordered: false },
      )
    },

    async assign(conversationId, from, to) {
      const asRead = from ? { 'assignment.version': from.version } : { assignment: { $exists: false } }
      const { modifiedCount } = await conversations.updateOne(
        { _id: conversationId, ...asRead },
        { $set: { assignment: to } },
      )
      return modifiedCount === 1
    },

    async markAnnounced(conversationId, version) {
      await conversations.updateOne(
        { _id: conversationId, 'assignment.version': version },
        { $set: { 'assignment.announced': true } },
      )
    },

    async unannounced(limit) {
      return (await conversations.find({ 'assignment.announced': false }).limit(limit).toArray()).map(toConversation)
    },

    async activeSince(workspaceId, since, limit) {
      const found = conversations.find({
        ...(workspaceId === undefined ? {} : { workspaceId }),
        lastMessageAt: { $gte: since },
        ...kept,
      })
      return (await found.sort({ lastMessageAt: -1 }).limit(limit).toArray()).map(toConversation)
    },

    async listActive({ workspaceId, status, before, limit }) {
      const found = conversations.find({
        ...(workspaceId === undefined ? {} : { workspaceId }),
        ...(status && { $expr: { [status === 'closed' ? '$gt' : '$lte']: ['$closedSequence', '$lastSequence'] } }),
        lastMessageAt: { $exists: true },
        ...kept,
        ...(before && {
          $or: [
            { lastMessageAt: { $lt: before.lastMessageAt } },
            { lastMessageAt: before.lastMessageAt, _id: { $lt: before.conversationId } },
          ],
        }),
      })
      return (await found.sort({ lastMessageAt: -1, _id: -1 }).limit(limit).toArray()).map(toConversation)
    },
  }
}

function toConversation({ _id, lastSession, erasing: _, ...rest }: ConversationDocument): Conversation {
  const { closedSequence = 0, lastSequence = 0 } = rest
  return {
    conversationId: _id,
    ...rest,
    ...(lastSession && { lastSessionId: lastSession.sessionId }),
    status: closedSequence > lastSequence ? 'closed' : 'open',
  }
}
