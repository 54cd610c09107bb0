import type { Collection, FindCursor, WithId } from 'mongodb'
import { createBatchLoader } from '../../platform/concurrency/batcher.ts'
import type { LogEnd, LogEvent } from '../log-event.ts'

interface HistoryPageQuery {
  conversationId: string
  after?: number
  before?: number
  limit: number
}

/** Maximum size of the messages of a page, as JSON. A larger message is a page of its own. */
export const pageMaxBytes = 262_144
/** Documents that the first batch of a page has. Most pages need no further batch. */
const firstBatch = 32

/**
 * A page of messages and the state of its log. It includes every message and every state change up
 * to `lastSequence`.
 */
export interface HistoryPage {
  /**
   * Messages in ascending order: either the first ones after the requested sequence or the last
   * ones before it. At most `limit` messages or `pageMaxBytes`.
   */
  messages: LogEvent[]
  /** Whether the requested range has further messages. */
  hasMore: boolean
  /** Changes of message states that are in the log but may not be applied to the messages yet. */
  changes: LogEvent[]
  /** Sequence of the log's last event; 0 when it is empty. */
  lastSequence: number
  /** Whether the conversation is closed after the event `lastSequence`. */
  closed: boolean
  /** Sequence of the conversation's first message; 0 when it has no message. */
  oldestSequence: number
}

/**
 * Creates a function that reads pages. It reads the end of the log first. So events that are written
 * during the call come after that end, and the stream delivers them. It reads the unapplied changes
 * before the messages. So a change that is applied meanwhile is in the messages. All reads go to the
 * primary, and `options` makes them skip data that a failover could roll back.
 *
 * `readEnds` returns the ends of logs. Concurrent pages share the reads of ends and changes, because a
 * call costs the database more than a document.
 */
export function createHistoryPages(
  events: Collection<LogEvent>,
  readEnds: (conversationIds: string[]) => Promise<Map<string, LogEnd>>,
  options: { readConcern: { level: 'majority' } },
): (query: HistoryPageQuery) => Promise<HistoryPage> {
  const endOf = createBatchLoader(readEnds)
  const changesOf = createBatchLoader(async (conversationIds) => {
    const found = await events.find({ unapplied: true, conversationId: { $in: conversationIds } }, options).toArray()
    return Map.groupBy(found.map(toEvent), ({ conversationId }) => conversationId)
  })

  return async ({ conversationId, after = 0, before, limit }) => {
    const end = await endOf(conversationId)
    if (!end) return { messages: [], hasMore: false, changes: [], lastSequence: 0, closed: false, oldestSequence: 0 }
    const { sequence: lastSequence, closed } = end
    const upToEnd = ({ sequence }: LogEvent) => sequence <= lastSequence
    const changes = ((await changesOf(conversationId)) ?? []).filter(upToEnd)

    const isMessage = { conversationId, message: { $exists: true } }
    const isAscending = before === undefined
    const sequence = isAscending ? { $gt: after, $lte: lastSequence } : { $lt: Math.min(before, lastSequence + 1) }
    const cursor = events.find({ ...isMessage, sequence }, { ...options, batchSize: firstBatch })
    const { found, hasMore } = await takePage(cursor.sort({ sequence: isAscending ? 1 : -1 }).limit(limit + 1), limit)
    const messages = isAscending ? found : found.reverse()

    const hasFirst = isAscending ? after === 0 : messages.length > 0 && !hasMore
    const page = { messages, hasMore, changes, lastSequence, closed }
    if (hasFirst) return { ...page, oldestSequence: messages[0]?.sequence ?? 0 }
    const first = await events.findOne(
      { ...isMessage, sequence: { $lte: lastSequence } },
      { ...options, sort: { sequence: 1 }, projection: { _id: 0, sequence: 1 } },
    )
    return { ...page, oldestSequence: first?.sequence ?? 0 }
  }
}

/** Reads events until the page is full. Always takes the first event, so that a reader advances. */
async function takePage(cursor: FindCursor<WithId<LogEvent>>, limit: number) {
  const found: LogEvent[] = []
  let bytes = 0
  try {
    for await (const document of cursor) {
      const event = toEvent(document)
      bytes += Buffer.byteLength(JSON.stringify(event))
      if (found.length === limit || (found.length > 0 && bytes > pageMaxBytes)) return { found, hasMore: true }
      found.push(event)
    }
    return { found, hasMore: false }
  } finally {
    await cursor.close()
  }
}

export const toEvent = ({ _id, ...event }: WithId<LogEvent>): LogEvent => event
