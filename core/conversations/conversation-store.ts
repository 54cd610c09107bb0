import type { Collection } from 'mongodb'
import { epochIn } from '../ids.ts'
import type { Activity, Announced, AnnouncedField, Assignment, BotState, Conversation, Note } from './model.ts'

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
   * Writes the next version of a field. With `activeAt`, also moves the conversation up in the
   * operators' list. Returns false if `from` is not the latest version.
   */
  change(
    conversationId: string,
    field: AnnouncedField,
    from: Announced | undefined,
    to: Assignment | BotState,
    activeAt?: Date,
  ): Promise<boolean>
  markAnnounced(conversationId: string, field: AnnouncedField, version: number): Promise<void>
  /** Returns conversations whose field has no event in the log yet. */
  unannounced(field: AnnouncedField, limit: number): Promise<Conversation[]>
  /** Returns conversations with a message since a time, the latest message first. */
  activeSince(workspaceId: string | undefined, since: Date, limit: number): Promise<Conversation[]>
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
        activities.map(({ conversationId, ...newest }) => ({
          updateOne: {
            // `$max` makes the order of updates irrelevant, so the filter needs only the id. A
            // filter with a condition would cost three times as much.
            filter: { _id: conversationId },
            update: { $max: newest },
          },
        })),
        // These fields are derived from the log and repaired after a fault, so the write does not
        // wait for the journal.
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

    async change(conversationId, field, from, to, activeAt) {
      const asRead = from ? { [`${field}.version`]: from.version } : { [field]: { $exists: false } }
      const { modifiedCount } = await conversations.updateOne(
        { _id: conversationId, ...asRead },
        { $set: { [field]: to }, ...(activeAt && { $max: { lastMessageAt: activeAt } }) },
      )
      return modifiedCount === 1
    },

    async markAnnounced(conversationId, field, version) {
      await conversations.updateOne(
        { _id: conversationId, [`${field}.version`]: version },
        { $set: { [`${field}.announced`]: true } },
      )
    },

    async unannounced(field, limit) {
      const found = conversations.find({ [`${field}.announced`]: false }, withoutNotes)
      return (await found.limit(limit).toArray()).map(toConversation)
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
