import type { Collection } from 'mongodb'
import type { Agent } from '../log/model.ts'

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
  /** Place of the last closing in the log. */
  closedSequence?: number
  assignment?: Assignment
}

/** Who an operator's side has named for a conversation. */
export interface Assignment {
  /** Counts the changes. */
  version: number
  agent?: Agent
  /** Whom an unassignment concerned. */
  previous?: Agent
  /** The event of this version is in the log. */
  announced: boolean
}

export type ConversationDocument = Omit<Conversation, 'conversationId' | 'lastSessionId' | 'status'> & {
  _id: string
  /** Whose message came last, with its place, by which the later of two is told. */
  lastSession?: { sequence: number; sessionId: string }
  /** An erasure removes it: nobody finds it any more. */
  erasing?: true
}

const kept = { erasing: { $exists: false } } as const

/** What the log has seen of a conversation, for the inbox. */
export interface Activity {
  conversationId: string
  lastMessageAt: Date
  lastSequence: number
  /** Whose message came last, with its place. */
  lastSession?: { sequence: number; sessionId: string }
}

export interface ConversationStore {
  /** False when it is there already: that changes nothing. */
  insertOnce(conversation: Conversation): Promise<boolean>
  find(conversationIds: string[]): Promise<Conversation[]>
  recordActivity(activities: Activity[]): Promise<void>
  /** Names the session that a conversation goes on with, unless a later one is known. */
  setLastSession(conversationId: string, lastSession: { sequence: number; sessionId: string }): Promise<void>
  /** Conversations as their logs have closed them. */
  recordClosed(closings: { conversationId: string; sequence: number }[]): Promise<void>
  /** The next version of an assignment, if the one that was read is still the latest. */
  assign(conversationId: string, from: Assignment | undefined, to: Assignment): Promise<boolean>
  markAnnounced(conversationId: string, version: number): Promise<void>
  /** Conversations whose assignment is not in the log yet. */
  unannounced(limit: number): Promise<Conversation[]>
  /** Conversations with a message since, the latest first. */
  activeSince(workspaceId: string | undefined, since: Date, limit: number): Promise<Conversation[]>
  /** Those with a message, latest first, after a place in that order. */
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
            // By the id alone and only forwards, whichever process comes last: a third of what a condition costs.
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
        // Derived from the log, and noted again after a fault: it must not make the log's own writes wait for the journal.
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
