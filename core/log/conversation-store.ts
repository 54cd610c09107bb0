import type { Core } from '../core.ts'
import { epochIn } from '../ids.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import type { Conversation, Note, QueuePlace, StoredRating } from './conversation-model.ts'

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
  /** Start of the period after which the retention checks whether the conversation has a message. */
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

export const withoutNotes = { projection: { notes: 0 } } as const

/** Returns those of the conversations that exist and are not hidden, in any order. */
export async function findConversations(core: Core, conversationIds: string[]): Promise<Conversation[]> {
  const found = core.db.conversations.find({ _id: { $in: conversationIds }, ...notErasing }, withoutNotes)
  return (await found.toArray()).map((document) => conversationOf(core, document))
}

/** Returns false if it exists. The epoch is stored without the id of the history, which each read adds. */
export async function insertConversation({ db }: Core, { conversationId, ...rest }: Conversation): Promise<boolean> {
  const { upsertedCount } = await db.conversations.updateOne(
    { _id: conversationId },
    { $setOnInsert: { ...rest, reviewAt: rest.createdAt } },
    { upsert: true },
  )
  return upsertedCount === 1
}

export type StatusChange = { conversationId: string } & ({ queue: QueuePlace } | { rating: StoredRating })

/** Records that conversations were closed, reopened or rated. The log already has the events. */
export async function recordStatus({ db }: Core, changes: StatusChange[]) {
  await db.conversations.bulkWrite(
    changes.map(({ conversationId, ...change }) => {
      const isClosing = 'queue' in change && !change.queue.open
      const update = { $max: isClosing ? { ...change, closedSequence: change.queue.sequence } : change }
      return { updateOne: { filter: { _id: conversationId }, update } }
    }),
    { ordered: false },
  )
}

export function conversationOf({ history }: Core, document: ConversationDocument): Conversation {
  const { _id, lastSession, erasing: _, reviewAt: __, postponedUntil: ___, ...fields } = document
  const { notes: ____, unseenAt: _____, told: ______, ...rest } = fields
  const { closedSequence = 0, lastSequence = 0, queue } = rest
  return {
    conversationId: _id,
    ...rest,
    epoch: epochIn(history, rest.epoch),
    lastSessionId: lastSession?.sessionId,
    status: closedSequence > lastSequence && closedSequence >= (queue?.sequence ?? 0) ? 'closed' : 'open',
  }
}
