import type { Collection, Filter } from 'mongodb'
import { epochIn } from '../ids.ts'
import {
  type Activity,
  type Announced,
  type AnnouncedField,
  type Assignee,
  type Assignment,
  type BotState,
  type Conversation,
  maxCounted,
  type Note,
  type QueueCounts,
  type QueuePlace,
  type StoredRating,
  type Tags,
} from './model.ts'

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
   * conversation has a message.
   */
  reviewAt?: Date
  /** Operators' notes, oldest first. Only `notesOf` reads them. */
  notes?: Note[]
  /** Time to look whether the visitor has seen the answers. Set while there may be an unseen one. */
  unseenAt?: Date
  /** What operators were told since the visitor waits (`core/notices/operator-notices.ts`), newest last. */
  told?: string[]
  /** Time of the next review. Set if the conversation is kept although its period is over. */
  postponedUntil?: Date
}

const notErasing = { erasing: { $exists: false } } as const
const withoutNotes = { projection: { notes: 0 } } as const

/** A conversation is closed if neither a message nor a reopening follows its last closing. */
const isClosed = {
  $and: [{ $gt: ['$closedSequence', '$lastSequence'] }, { $gte: ['$closedSequence', '$queue.sequence'] }],
}

export interface ConversationStore {
  /**
   * Inserts a conversation. Returns false and changes nothing if it exists. The epoch is stored
   * without the id of the history. Each read adds this id.
   */
  insertOnce(conversation: Conversation): Promise<boolean>
  find(conversationIds: string[]): Promise<Conversation[]>
  recordActivity(activities: Activity[]): Promise<void>
  /**
   * Stores the session that has taken over the conversation from an earlier session. `sequence` is
   * the position of the takeover event in the log. Changes nothing if a higher sequence is stored.
   */
  setLastSession(conversationId: string, lastSession: { sequence: number; sessionId: string }): Promise<void>
  /** Returns conversations whose time to look for unseen messages is in this range, the earliest first. */
  unseenAt(after: Date, until: Date, limit: number): Promise<{ conversationId: string; unseenAt: Date }[]>
  /** Moves or removes the time to look for unseen messages. Returns false if it has changed meanwhile. */
  moveUnseenAt(conversationId: string, from: Date, to: Date | undefined): Promise<boolean>
  /** Queues the mail of unseen answers, unless there is one for this message. */
  queueMail(conversationId: string, messageId: string, at: Date): Promise<void>
  /** Records that conversations were closed, reopened or rated. The log already has the events. */
  recordStatus(changes: StatusChange[]): Promise<void>
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
    to: Assignment | BotState | Tags,
    activeAt?: Date,
  ): Promise<boolean>
  markAnnounced(conversationId: string, field: AnnouncedField, version: number): Promise<void>
  /** Returns conversations whose field has no event in the log yet. */
  unannounced(field: AnnouncedField, limit: number): Promise<Conversation[]>
  /** Returns conversations with a message since a time, the latest message first. */
  activeSince(workspaceId: string | undefined, since: Date, limit: number): Promise<Conversation[]>
  /**
   * Returns the times since when visitors of these workspaces wait for an answer, the oldest first.
   */
  waitingSince(workspaceIds: string[], since: Date, limit: number): Promise<Date[]>
  /**
   * Returns conversations with a message, the latest message first; unanswered ones by the time
   * since when they wait, the oldest first. With `after`, returns only conversations that come after
   * this position in the list.
   */
  listActive(query: ListQuery & { after?: { at: Date; id: string }; limit: number }): Promise<Conversation[]>
  /** Counts the open conversations of a workspace in the queues of an agent. */
  count(workspaceId: string, assignee: Assignee): Promise<QueueCounts>
}

export type StatusChange = { conversationId: string } & ({ queue: QueuePlace } | { rating: StoredRating })

export interface ListQuery {
  workspaceId?: string
  status?: 'open' | 'closed'
  assignee?: Assignee
  /** True for open conversations whose visitor waits for an answer. */
  unanswered?: boolean
  /** A tag of the conversations. */
  tag?: string
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
        activities.map(({ conversationId, unseenAt, ...activity }) => ({
          updateOne: {
            // `$max` makes the order of updates irrelevant, so the filter needs only the id. A
            // filter with a condition would cost three times as much.
            filter: { _id: conversationId },
            update: { $max: activity, ...(unseenAt && { $min: { unseenAt } }) },
          },
        })),
        // These fields are derived from the log and repaired after a fault, so the write does not
        // wait for the journal.
        { ordered: false, writeConcern: { w: 1 } },
      )
    },

    async waitingSince(workspaceIds, since, limit) {
      const found = await conversations
        .find(
          { workspaceId: { $in: workspaceIds }, 'queue.waitingSince': { $gte: since }, ...notErasing },
          { projection: { _id: 0, 'queue.waitingSince': 1 }, hint: 'by_waiting' },
        )
        .sort({ 'queue.waitingSince': 1 })
        .limit(limit)
        .toArray()
      return found.flatMap(({ queue }) => queue?.waitingSince ?? [])
    },

    async unseenAt(after, until, limit) {
      const due = { unseenAt: { $gt: after, $lte: until }, ...notErasing }
      const found = conversations.find(due, { projection: { unseenAt: 1 }, hint: 'by_unseen' })
      return (await found.sort({ unseenAt: 1 }).limit(limit).toArray()).map(({ _id, unseenAt }) => ({
        conversationId: _id,
        unseenAt: unseenAt!,
      }))
    },

    async moveUnseenAt(conversationId, from, to) {
      const update = to ? { $set: { unseenAt: to } } : { $unset: { unseenAt: '' as const } }
      const { modifiedCount } = await conversations.updateOne({ _id: conversationId, unseenAt: from }, update)
      return modifiedCount === 1
    },

    async queueMail(conversationId, messageId, at) {
      await conversations.updateOne(
        { _id: conversationId, 'mail.messageId': { $ne: messageId } },
        { $set: { mail: { messageId, state: 'waiting', at, dueAt: at, attempts: 0 } } },
      )
    },

    async setLastSession(conversationId, lastSession) {
      await conversations.updateOne({ _id: conversationId }, { $max: { lastSession } })
    },

    async recordStatus(changes) {
      await conversations.bulkWrite(
        changes.map(({ conversationId, ...change }) => {
          const isClosing = 'queue' in change && !change.queue.open
          const update = { $max: isClosing ? { ...change, closedSequence: change.queue.sequence } : change }
          return { updateOne: { filter: { _id: conversationId }, update } }
        }),
        { ordered: false },
      )
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

    async listActive({ workspaceId, status, assignee, unanswered, tag, after, limit }) {
      const time = unanswered ? 'queue.waitingSince' : 'lastMessageAt'
      const order = unanswered ? 1 : -1
      const later = order === 1 ? '$gt' : '$lt'
      // The open conversations of an agent are few, so they are sorted in memory.
      const isShort = status === 'open' && assignee !== undefined && !unanswered
      const hint = unanswered ? 'by_waiting' : isShort ? openIndexOf(assignee) : tag ? 'by_tag' : undefined
      const found = conversations.find(
        {
          workspaceId,
          $expr: status && (status === 'closed' ? isClosed : { $not: [isClosed] }),
          ...assignedTo(assignee),
          ...(isShort && { 'queue.open': true as const }),
          ...(tag !== undefined && { 'tags.names': tag }),
          [time]: { $exists: true },
          ...notErasing,
          $or: after && [{ [time]: { [later]: after.at } }, { [time]: after.at, _id: { [later]: after.id } }],
        },
        { ...withoutNotes, hint },
      )
      return (
        await found
          .sort({ [time]: order, _id: order })
          .limit(limit)
          .toArray()
      ).map(toConversation)
    },

    async count(workspaceId, assignee) {
      const counted = (filter: Filter<ConversationDocument>, hint: string) =>
        conversations.countDocuments({ workspaceId, ...notErasing, ...filter }, { limit: maxCounted, hint })
      const open = (of?: Assignee) =>
        counted(
          {
            'queue.open': true,
            lastMessageAt: { $exists: true },
            ...assignedTo(of),
          },
          openIndexOf(of),
        )
      const [unanswered, mine, unassigned, all] = await Promise.all([
        counted({ 'queue.waitingSince': { $exists: true } }, 'by_waiting'),
        open(assignee),
        open(null),
        open(),
      ])
      return { unanswered, mine, unassigned, open: all }
    },
  }
}

const assignedTo = (assignee: Assignee | undefined) =>
  assignee === undefined
    ? {}
    : assignee && 'operator' in assignee
      ? { 'assignment.operator': assignee.operator }
      : { 'assignment.agent.displayName': assignee?.name ?? null }

const openIndexOf = (assignee: Assignee | undefined) =>
  assignee && 'operator' in assignee ? 'by_assignee' : 'by_openness'

function conversationOf(document: ConversationDocument, history: string): Conversation {
  const {
    _id,
    lastSession,
    erasing: _,
    reviewAt: __,
    postponedUntil: ___,
    notes: ____,
    unseenAt: _____,
    told: ______,
    ...rest
  } = document
  const { closedSequence = 0, lastSequence = 0, queue } = rest
  return {
    conversationId: _id,
    ...rest,
    epoch: epochIn(history, rest.epoch),
    lastSessionId: lastSession?.sessionId,
    status: closedSequence > lastSequence && closedSequence >= (queue?.sequence ?? 0) ? 'closed' : 'open',
  }
}
