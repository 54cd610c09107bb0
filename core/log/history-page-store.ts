import type { Collection, Document } from 'mongodb'
import type { LogEvent } from './model.ts'

export interface HistoryPageQuery {
  conversationId: string
  after?: number
  before?: number
  limit: number
}

/**
 * A page of messages and the state of its log. It includes every message and every state change up
 * to `lastSequence`.
 */
export interface HistoryPage {
  /**
   * Messages in ascending order: either the first ones after the requested sequence or the last
   * ones before it.
   */
  messages: LogEvent[]
  /** Changes of message states that are in the log but may not be applied to the messages yet. */
  changes: LogEvent[]
  /** Sequence of the log's last event; 0 when it is empty. */
  lastSequence: number
  /** Sequence of the conversation's first message; 0 when it has no message. */
  oldestSequence: number
}

/**
 * Reads a page with one query, so that all parts come from one server. The query reads the end of the
 * log first. So events that are written during the query come after that end, and the stream
 * delivers them.
 */
export async function readHistoryPage(
  events: Collection<LogEvent>,
  { conversationId, after, before, limit }: HistoryPageQuery,
  options: { readConcern: { level: 'majority' } },
): Promise<HistoryPage> {
  const upToEnd = { conversationId, $expr: { $lte: ['$sequence', '$$end'] } }
  const isMessage = { message: { $exists: true } }
  const sequence = before === undefined ? { $gt: after ?? 0 } : { $lt: before }
  const lookup = (as: string, ...pipeline: Document[]) => ({
    $lookup: { from: events.collectionName, let: { end: '$sequence' }, pipeline, as },
  })
  const [found] = await events
    .aggregate<{ sequence: number; changes: LogEvent[]; messages: LogEvent[]; first: { sequence: number }[] }>(
      [
        { $match: { conversationId } },
        { $sort: { conversationId: -1, sequence: -1 } },
        { $limit: 1 },
        { $project: { _id: 0, sequence: 1 } },
        lookup('changes', { $match: { ...upToEnd, unapplied: true } }, { $unset: '_id' }),
        lookup(
          'messages',
          { $match: { ...upToEnd, ...isMessage, sequence } },
          { $sort: { sequence: before === undefined ? 1 : -1 } },
          { $limit: limit },
          { $unset: '_id' },
        ),
        lookup(
          'first',
          { $match: { ...upToEnd, ...isMessage } },
          { $sort: { sequence: 1 } },
          { $limit: 1 },
          { $project: { _id: 0, sequence: 1 } },
        ),
      ],
      options,
    )
    .toArray()
  if (!found) return { messages: [], changes: [], lastSequence: 0, oldestSequence: 0 }
  const { messages, changes, first } = found
  return {
    messages: before === undefined ? messages : messages.reverse(),
    changes,
    lastSequence: found.sequence,
    oldestSequence: first[0]?.sequence ?? 0,
  }
}
