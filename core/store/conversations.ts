import type { Collections } from './database.ts'

export interface Conversation {
  conversationId: string
  workspaceId: string
  connectionId: string
  /** Identity of the event log: a position of another epoch is no position here. */
  epoch: string
  createdAt: Date
  /** What the inbox shows; it follows the log and may be behind for a moment. */
  lastMessageAt?: Date
  lastSequence?: number
  lastSessionId?: string
  status?: 'open' | 'closed'
}

export type ConversationDocument = Omit<Conversation, 'conversationId'> & { _id: string }

/** What the log has seen of a conversation, for the inbox. */
export interface Activity {
  conversationId: string
  lastMessageAt: Date
  lastSequence: number
  lastSessionId?: string
}

export interface ConversationStore {
  insert(conversation: Conversation): Promise<void>
  /** An insert of what is there already changes nothing. */
  insertOnce(conversation: Conversation): Promise<void>
  find(conversationIds: string[]): Promise<Conversation[]>
  recordActivity(activities: Activity[]): Promise<void>
  /** Those with a message, latest first, after a place in that order. */
  listActive(query: {
    workspaceId?: string
    before?: { lastMessageAt: Date; conversationId: string }
    limit: number
  }): Promise<Conversation[]>
}

export function createConversationStore({ conversations }: Pick<Collections, 'conversations'>): ConversationStore {
  return {
    async insert({ conversationId, ...rest }) {
      await conversations.insertOne({ _id: conversationId, ...rest })
    },

    async insertOnce({ conversationId, ...rest }) {
      await conversations.updateOne({ _id: conversationId }, { $setOnInsert: rest }, { upsert: true })
    },

    async find(conversationIds) {
      return (await conversations.find({ _id: { $in: conversationIds } }).toArray()).map(toConversation)
    },

    async recordActivity(activities) {
      await conversations.bulkWrite(
        activities.map(({ conversationId, lastMessageAt, lastSequence, lastSessionId }) => ({
          updateOne: {
            // Only forwards, whichever process comes last.
            filter: {
              _id: conversationId,
              $or: [{ lastSequence: { $lt: lastSequence } }, { lastSequence: { $exists: false } }],
            },
            update: { $set: { lastMessageAt, lastSequence, lastSessionId } },
          },
        })),
        { ordered: false },
      )
    },

    async listActive({ workspaceId, before, limit }) {
      const found = conversations.find({
        ...(workspaceId === undefined ? {} : { workspaceId }),
        lastMessageAt: { $exists: true },
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

function toConversation({ _id, ...rest }: ConversationDocument): Conversation {
  return { conversationId: _id, ...rest }
}
