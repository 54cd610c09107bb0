import { type Collection, type FindCursor, ObjectId, type WithId } from 'mongodb'
import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { perCore } from '../core.ts'
import {
  type EventType,
  isCompletion,
  type LogEnd,
  type LogEvent,
  type LogStart,
  type OperationKey,
} from '../log-event.ts'
import { committed } from '../mongodb/committed.ts'
import { duplicateIndex } from '../mongodb/faults.ts'
import { insertAll } from '../mongodb/insert-each.ts'

export type EventDocument = LogEvent

type InsertOutcome = 'inserted' | 'sequence_taken' | 'operation_taken'

interface Range {
  conversationId: string
  after: number
}

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

/** Maximum size of the messages of a page, as JSON. A larger message is a page of its own. */
export const pageMaxBytes = 262_144
/** Documents that the first batch of a page has. Most pages need no further batch. */
const firstBatch = 32

const isMessage = { message: { $exists: true } }
const lasting = { transient: { $exists: false } }
const activityTypes: EventType[] = [
  'conversation.closed',
  'conversation.reopened',
  'human.requested',
  'rating.given',
  'form.submitted',
]

/** Returns true if the event changes how the inbox shows its conversation. */
export const isActivity = ({ message, type }: LogEvent) => message !== undefined || activityTypes.includes(type)

/** By default, reads return only committed events, in the order of their sequences. */
export function createEventStore({ events }: { events: Collection<EventDocument> }) {
  const read = async (filter: object, page: { limit?: number; sort?: Record<string, 1 | -1> } = {}) =>
    (await events.find(filter, { ...committed, ...page }).toArray()).map(toEvent)

  /** Returns these fields of the oldest event (`order` 1) or the newest event (-1) of each log. */
  async function edges<F extends 'sequence' | 'closed' | 'occurredAt' | 'transient' | 'waitingSince'>(
    conversationIds: string[],
    order: 1 | -1,
    fields: F[],
    options: typeof committed | object = committed,
  ) {
    const first = Object.fromEntries(fields.map((field) => [field, { $first: `$${field}` }]))
    // With this sort order the database jumps in the index from one conversation's end to the next.
    const stages = [
      { $match: { conversationId: { $in: conversationIds } } },
      { $sort: { conversationId: order, sequence: order } },
      { $group: { _id: '$conversationId', ...first } },
    ]
    return events.aggregate<{ _id: string } & Pick<EventDocument, F>>(stages, options).toArray()
  }

  /**
   * Returns the ends of those logs that have events. By default, a failover may roll the end back. That
   * is enough for writers, because the unique index rejects a wrong sequence. Readers must set
   * `committed`.
   */
  async function ends(
    conversationIds: string[],
    { committed: onlyCommitted = false }: { committed?: boolean } = {},
  ): Promise<Map<string, LogEnd>> {
    if (conversationIds.length === 0) return new Map()
    const fields = ['sequence' as const, 'closed' as const, 'waitingSince' as const]
    const rows = await edges(conversationIds, -1, fields, onlyCommitted ? committed : {})
    return new Map(
      rows.map(({ _id, sequence, closed, waitingSince }) => [
        _id,
        { sequence, closed: closed === true, ...(waitingSince && { waitingSince }) },
      ]),
    )
  }

  // Concurrent pages share these reads, because a call costs the database more than a document.
  const endOf = createBatchLoader((ids) => ends(ids, { committed: true }))
  const changesOf = createBatchLoader(async (ids) =>
    Map.groupBy(await read({ unapplied: true, conversationId: { $in: ids } }), ({ conversationId }) => conversationId),
  )

  return {
    /**
     * Writes a batch with at most one event of each conversation. With two events of a conversation,
     * the store could keep the second and refuse the first. Another process could then write an event
     * with the first one's sequence after readers have passed that sequence. If the call throws, it
     * is unknown which events were written.
     */
    async insert(batch: LogEvent[]) {
      const documents = batch.map((event) => ({ ...event, message: isCompletion(event) ? undefined : event.message }))
      const rejected = await insertAll(events, documents)
      return batch.map((_, index): InsertOutcome => {
        const rejection = rejected.get(index)
        const outcome = rejection ? outcomes[duplicateIndex(rejection) ?? ''] : 'inserted'
        if (!outcome) throw rejection!.error
        return outcome
      })
    },

    /** Returns the events of these operations, in any order. */
    findOperations: (operations: { conversationId: string; operationKey: OperationKey }[]): Promise<LogEvent[]> =>
      read({ $or: operations }),

    ends,
    /** Returns the events after a sequence. Transient events are included only on request. */
    async readAfter(
      { conversationId, after }: Range,
      limit: number,
      { transient = false }: { transient?: boolean } = {},
    ) {
      const filter = { conversationId, sequence: { $gt: after }, ...(transient ? {} : lasting) }
      return withTexts(events, await read(filter, { limit, sort: { sequence: 1 } }))
    },

    /**
     * Returns the events after a sequence in each of many conversations, sorted by conversation. `limit`
     * is the maximum for all conversations together.
     */
    async readManyAfter(ranges: Range[], limit: number, { transient = false }: { transient?: boolean } = {}) {
      // The database makes a query plan for each alternative of `$or`. A plan costs as much as the
      // read. So ranges with the same start share one alternative.
      const places = Map.groupBy(ranges, ({ after }) => after)
      const $or = [...places].map(([after, together]) => ({
        conversationId: { $in: together.map(({ conversationId }) => conversationId) },
        sequence: { $gt: after },
      }))
      const filter = { $or, ...(transient ? {} : lasting) }
      return withTexts(events, await read(filter, { limit, sort: { conversationId: 1, sequence: 1 } }))
    },

    /** Returns the events with these sequences, in any order. */
    at: async (places: { conversationId: string; sequence: number }[]): Promise<LogEvent[]> =>
      places.length === 0 ? [] : read({ $or: places }),

    /** Counts the events after a sequence, without transient ones. Stops counting at `limit`. */
    countAfter({ conversationId, after }: Range, limit: number) {
      return events.countDocuments({ conversationId, sequence: { $gt: after }, ...lasting }, { ...committed, limit })
    },

    /**
     * Reads the end of the log first. So events that are written during the call come after that end, and
     * the stream delivers them. Reads the unapplied changes before the messages. So a change that is
     * applied meanwhile is in the messages.
     */
    async historyPage(page: {
      conversationId: string
      after?: number
      before?: number
      limit: number
    }): Promise<HistoryPage> {
      const { conversationId, after = 0, before, limit } = page
      const end = await endOf(conversationId)
      if (!end) return { messages: [], hasMore: false, changes: [], lastSequence: 0, closed: false, oldestSequence: 0 }
      const { sequence: lastSequence, closed } = end
      const changes = ((await changesOf(conversationId)) ?? []).filter(({ sequence }) => sequence <= lastSequence)

      const isAscending = before === undefined
      const sequence = isAscending ? { $gt: after, $lte: lastSequence } : { $lt: Math.min(before, lastSequence + 1) }
      const options = {
        ...committed,
        sort: { sequence: isAscending ? 1 : -1 },
        limit: limit + 1,
        batchSize: firstBatch,
      } as const
      const cursor = events.find({ conversationId, ...isMessage, sequence }, options)
      const { found, hasMore } = await takePage(cursor, limit)
      const messages = isAscending ? found : found.reverse()

      const history = { messages, hasMore, changes, lastSequence, closed }
      const hasFirst = isAscending ? after === 0 : messages.length > 0 && !hasMore
      if (hasFirst) return { ...history, oldestSequence: messages[0]?.sequence ?? 0 }
      const first = await events.findOne(
        { conversationId, ...isMessage, sequence: { $lte: lastSequence } },
        { ...committed, sort: { sequence: 1 }, projection: { _id: 0, sequence: 1 } },
      )
      return { ...history, oldestSequence: first?.sequence ?? 0 }
    },

    ofTypes(types: EventType[], { conversationId, after, before }: Range & { before?: number }, limit: number) {
      const sequence = { $gt: after, ...(before !== undefined && { $lt: before }) }
      return read({ conversationId, sequence, type: { $in: types } }, { limit, sort: { sequence: 1 } })
    },

    /** Returns the newest events of these types up to a sequence, the newest first. */
    newestOf: (
      types: EventType[],
      { conversationId, through }: { conversationId: string; through: number },
      limit: number,
    ): Promise<LogEvent[]> =>
      read({ conversationId, sequence: { $lte: through }, type: { $in: types } }, { limit, sort: { sequence: -1 } }),

    firstMessage: async (conversationId: string): Promise<LogEvent | undefined> =>
      (await read({ conversationId, ...isMessage }, { limit: 1, sort: { sequence: 1 } }))[0],

    async starts(conversationIds: string[]): Promise<Map<string, LogStart>> {
      return byKey(await edges(conversationIds, 1, ['sequence', 'occurredAt', 'transient']), ({ _id }) => _id)
    },

    /**
     * Returns the sequence of the oldest event at or after the time `since`; 0 when there is none.
     * Ignores transient events. With `newest`, searches only the last `newest` events.
     */
    async oldestSequence(conversationId: string, { since, newest }: { since: Date; newest?: number }) {
      const options = { ...committed, projection: { _id: 0, sequence: 1 } }
      const ofLog = { conversationId, ...lasting }
      const edge =
        newest === undefined
          ? null
          : await events.findOne(ofLog, { ...options, sort: { sequence: -1 }, skip: newest - 1 })
      const sequence = { $gte: edge?.sequence ?? 0 }
      const inWindow = { conversationId, sequence, occurredAt: { $gte: since }, ...lasting }
      return (await events.findOne(inWindow, { ...options, sort: { sequence: 1 } }))?.sequence ?? 0
    },

    /**
     * Reads at most `limit` events that are due for removal, oldest first. Returns their
     * conversations, and in `seen` the number of events read.
     */
    async dueTransient(before: Date, limit: number): Promise<{ conversationIds: string[]; seen: number }> {
      const oldest = { projection: { _id: 0, conversationId: 1 }, sort: { removableAt: 1 }, limit } as const
      const found = await events.find({ removableAt: { $lte: before } }, oldest).toArray()
      return { conversationIds: [...new Set(found.map(({ conversationId }) => conversationId))], seen: found.length }
    },

    /**
     * Removes the due transient events before `end`, the last sequence of the log. Clears
     * `removableAt` of the event at `end`, so that `dueTransient` does not return that event again.
     */
    async removeTransient(conversationId: string, end: number, before: Date) {
      const { deletedCount } = await events.deleteMany({
        conversationId,
        sequence: { $lt: end },
        transient: true,
        // Events that were the end of the log during an earlier sweep have no `removableAt`.
        $or: [{ removableAt: { $lte: before } }, { removableAt: { $exists: false } }],
      })
      await events.updateOne(
        { conversationId, sequence: end, removableAt: { $lte: before } },
        { $unset: { removableAt: '' } },
      )
      return deletedCount
    },

    /** Returns what the inbox shows of the events that all processes wrote since a time, in any order. */
    activitySince: (time: Date): AsyncIterable<LogEvent> =>
      events.find({ _id: { $gte: idAt(time) }, $or: [isMessage, { type: { $in: activityTypes } }] }).map(toEvent),
  }
}

export type EventStore = ReturnType<typeof createEventStore>

export const eventsOf = perCore(({ db }) => createEventStore(db))

export const toEvent = ({ _id, ...event }: WithId<LogEvent>): LogEvent => event

/** Returns the lowest id of the second that has this time. */
export const idAt = (time: Date) => ObjectId.createFromTime(Math.floor(time.getTime() / 1000))

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

/** Adds to each event `message.completed` the message that it completes, with its present text. */
export async function withTexts(events: Collection<EventDocument>, found: LogEvent[]): Promise<LogEvent[]> {
  const places = found
    .filter(isCompletion)
    .map(({ conversationId, messageSequence = 0 }) => ({ conversationId, sequence: messageSequence }))
  if (places.length === 0) return found
  const begun = await events.find({ $or: places }, committed).toArray()
  const messages = new Map(begun.map((each) => [`${each.conversationId} ${each.sequence}`, each.message]))
  return found.map((event) => {
    const message = isCompletion(event) && messages.get(`${event.conversationId} ${event.messageSequence}`)
    return message ? { ...event, message } : event
  })
}

const outcomes: Record<string, InsertOutcome> = { by_sequence: 'sequence_taken', by_operation: 'operation_taken' }
