import type { Collection, Document } from 'mongodb'
import type { EventDocument } from './event-store.ts'
import type { LogEvent } from './model.ts'

export interface HistoryPageQuery {
  conversationId: string
  after?: number
  before?: number
  limit: number
}

/** A page and the end of its log. It has every message and every change of state up to that end. */
export interface HistoryPage {
  /** The first messages after a sequence or the last ones before it, oldest first. */
  messages: LogEvent[]
  /** Changes of state in the log that may not be applied to the messages yet. */
  changes: LogEvent[]
  /** Sequence of the log's last event; 0 when it is empty. */
  lastSequence: number
  /** Sequence of the first message; 0 when there is none. */
  oldestSequence: number
}

/**
 * Reads a page with one query, so that one server answers and no failover happens between the
 * parts. The order matters: first the end, then the changes that are not applied, then the
 * messages. Events written during the query come after the end; the stream delivers them.
 */
export async function readHistoryPage(
  events: Collection<EventDocument>,
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
