import type { Collection } from 'mongodb'
import { epochIn } from '../ids.ts'
import type { Activity, Assignment, Conversation, Note } from './model.ts'

export type ConversationDocument = Omit<Conversation, 'conversationId' | 'lastSessionId' | 'status'> & {
  _id: string
  /**
   * The session that last sent a message or took over the conversation. `sequence` is the position
   * of that event in the log. A lower sequence never replaces a higher one.
   */
  lastSession?: { sequence: number; sessionId: string }
  /**
   * Set while the conversation is being removed, so that queries skip it. The value is the id of
   * the removal (`core/privacy/removals.ts`), or true if an erasure removes the conversation.
   */
  erasing?: true | string
  /**
   * Start of the retention period. At the end of this period, the retention checks whether the
   * conversation has a message. Conversations that earlier versions stored have no such time and
   * are always due for the check.
   */
  reviewAt?: Date
  /** Operators' notes, oldest first. Only `notesOf` reads them. */
  notes?: Note[]
  /** Time of the next review. Set if the conversation is kept although its period is over. */
  postponedUntil?: Date
}

const notErasing = { erasing: { $exists: false } } as const
const withoutNotes = { projection: { notes: 0 } } as const

export interface ConversationStore {
  /**
   * Inserts a conversation. Returns false and changes nothing if it exists. The stored epoch lacks the
   * id of the history, which every read adds.
   */
  insertOnce(conversation: Conversation): Promise<boolean>
  find(conversationIds: string[]): Promise<Conversation[]>
  recordActivity(activities: Activity[]): Promise<void>
  /**
   * Stores the session that has taken over the conversation from an earlier session. `sequence` is
   * the position of the takeover event in the log. Changes nothing if a higher sequence is stored.
   */
  setLastSession(conversationId: string, lastSession: { sequence: number; sessionId: string }): Promise<void>
  /** Marks conversations as closed. The log already has the events that closed them. */
  recordClosed(closings: { conversationId: string; sequence: number }[]): Promise<void>
  /** Marks a conversation as open. The log already has the event that reopened it. */
  recordReopened(conversationId: string, sequence: number): Promise<void>
  /**
   * Adds a note. Returns false and changes nothing if the conversation has a note of the same
   * operation, has `max` notes, or does not exist.
   */
  addNote(conversationId: string, note: Note, max: number): Promise<boolean>
  /** Returns the notes of a conversation, oldest first. */
  notesOf(conversationId: string): Promise<Note[]>
  /**
   * Writes the next version of an assignment. Returns false if `from` is not the latest version.
   */
  assign(conversationId: string, from: Assignment | undefined, to: Assignment): Promise<boolean>
  markAnnounced(conversationId: string, version: number): Promise<void>
  /** Returns conversations whose assignment has no event in the log yet. */
  unannounced(limit: number): Promise<Conversation[]>
  /** Returns conversations with a message since a time, the latest message first. */
  activeSince(workspaceId: string | undefined, since: Date, limit: number): Promise<Conversation[]>
  /**
   * Returns the times of the last messages of open conversations whose last message is of a visitor,
   * oldest first.
   */
  waitingSince(workspaceIds: string[], since: Date, limit: number): Promise<Date[]>
  /**
   * Returns conversations with a message, the latest message first. With `before`, returns only
   * conversations that come after this position in the list.
   */
  listActive(query: {
    workspaceId?: string
    status?: 'open' | 'closed'
    before?: { lastMessageAt: Date; conversationId: string }
    limit: number
  }): Promise<Conversation[]>
}

export function createConversationStore({
  conversations,
  history,
}: {
  conversations: Collection<ConversationDocument>
  history: string
}): ConversationStore {
  const toConversation = (document: ConversationDocument) => conversationOf(document, history)

  return {
    async insertOnce({ conversationId, ...rest }) {
      const { upsertedCount } = await conversations.updateOne(
        { _id: conversationId },
        { $setOnInsert: { ...rest, reviewAt: rest.createdAt } },
        { upsert: true },
      )
      return upsertedCount === 1
    },

    async find(conversationIds) {
      return (await conversations.find({ _id: { $in: conversationIds }, ...notErasing }, withoutNotes).toArray()).map(
        toConversation,
      )
    },

    async recordActivity(activities) {
      await conversations.bulkWrite(
        activities.map(({ conversationId, lastMessageAt, lastSequence, lastSession }) => ({
          updateOne: {
            // `$max` makes the order of updates irrelevant, so the filter needs only the id. A
            // filter with a condition would cost three times as much.
            filter: { _id: conversationId },
            update: { $max: { lastMessageAt, lastSequence, lastSession } },
          },
        })),
        // These fields are derived from the log and repaired after a fault, so the write does not
        // wait for the journal.
        { ordered: false, writeConcern: { w: 1 } },
      )
    },

    async waitingSince(workspaceIds, since, limit) {
      const found = await conversations
        .aggregate<{ lastMessageAt: Date }>([
          { $match: { workspaceId: { $in: workspaceIds }, lastMessageAt: { $gte: since }, ...notErasing } },
          // Events of agents have no session, and closing a conversation comes after its last message.
          { $match: { $expr: { $gte: ['$lastSession.sequence', '$lastSequence'] } } },
          { $match: { $expr: { $lt: [{ $ifNull: ['$closedSequence', 0] }, '$lastSequence'] } } },
          { $sort: { lastMessageAt: 1 } },
          { $limit: limit },
          { $project: { _id: 0, lastMessageAt: 1 } },
        ])
        .toArray()
      return found.map(({ lastMessageAt }) => lastMessageAt)
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

    async recordReopened(conversationId, sequence) {
      await conversations.updateOne({ _id: conversationId }, { $max: { lastSequence: sequence } })
    },

    async addNote(conversationId, note, max) {
      const { modifiedCount } = await conversations.updateOne(
        {
          _id: conversationId,
          ...notErasing,
          'notes.operationId': { $ne: note.operationId },
          [`notes.${max - 1}`]: { $exists: false },
        },
        { $push: { notes: note } },
      )
      return modifiedCount === 1
    },

    async notesOf(conversationId) {
      const found = await conversations.findOne({ _id: conversationId, ...notErasing }, { projection: { notes: 1 } })
      return found?.notes ?? []
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
      return (await conversations.find({ 'assignment.announced': false }, withoutNotes).limit(limit).toArray()).map(
        toConversation,
      )
    },

    async activeSince(workspaceId, since, limit) {
      const found = conversations.find(
        {
          workspaceId,
          lastMessageAt: { $gte: since },
          ...notErasing,
        },
        withoutNotes,
      )
      return (await found.sort({ lastMessageAt: -1 }).limit(limit).toArray()).map(toConversation)
    },

    async listActive({ workspaceId, status, before, limit }) {
      const found = conversations.find(
        {
          workspaceId,
          $expr: status && { [status === 'closed' ? '$gt' : '$lte']: ['$closedSequence', '$lastSequence'] },
          lastMessageAt: { $exists: true },
          ...notErasing,
          $or: before && [
            { lastMessageAt: { $lt: before.lastMessageAt } },
            { lastMessageAt: before.lastMessageAt, _id: { $lt: before.conversationId } },
          ],
        },
        withoutNotes,
      )
      return (await found.sort({ lastMessageAt: -1, _id: -1 }).limit(limit).toArray()).map(toConversation)
    },
  }
}

function conversationOf(document: ConversationDocument, history: string): Conversation {
  const { _id, lastSession, erasing: _, reviewAt: __, postponedUntil: ___, notes: ____, ...rest } = document
  const { closedSequence = 0, lastSequence = 0 } = rest
  return {
    conversationId: _id,
    ...rest,
    epoch: epochIn(history, rest.epoch),
    lastSessionId: lastSession?.sessionId,
    status: closedSequence > lastSequence ? 'closed' : 'open',
  }
}
