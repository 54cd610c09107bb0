import { type BulkWriteResult, type Collection, MongoBulkWriteError, type MongoServerError, ObjectId } from 'mongodb'
import { byKey } from '../../platform/concurrency/batcher.ts'
import { perCore } from '../core.ts'
import {
  type EventType,
  isCompletion,
  type LogEnd,
  type LogEvent,
  type LogStart,
  type OperationKey,
} from '../log-event.ts'
import { duplicateIndex, isDuplicateKey } from '../mongodb/faults.ts'
import { createHistoryPages, toEvent } from './history-page-store.ts'

export type EventDocument = LogEvent

/** Result of the insert of one event. */
type InsertOutcome = 'inserted' | 'sequence_taken' | 'operation_taken'

export interface Range {
  conversationId: string
  after: number
}

export function createEventStore({ events }: { events: Collection<EventDocument> }) {
  const isMessage = { message: { $exists: true } }
  const lasting = { transient: { $exists: false } }

  /** Returns these fields of the oldest event (`order` 1) or the newest event (-1) of each log. */
  async function edges<F extends 'sequence' | 'closed' | 'occurredAt' | 'transient' | 'waitingSince'>(
    conversationIds: string[],
    { order, fields, options }: { order: 1 | -1; fields: F[]; options: typeof committed | object },
  ) {
    const first = Object.fromEntries(fields.map((field) => [field, { $first: `$${field}` }]))
    // With this sort order the database jumps in the index from one conversation's end to the
    // next.
    const stages = [
      { $match: { conversationId: { $in: conversationIds } } },
      { $sort: { conversationId: order, sequence: order } },
      { $group: { _id: '$conversationId', ...first } },
    ]
    return events.aggregate<{ _id: string } & Pick<EventDocument, F>>(stages, options).toArray()
  }

  /**
   * Returns the last sequence of each conversation that has events, and whether the conversation is
   * closed. By default the query reads the latest data, which a failover may roll back. That is
   * enough for writers, because the unique index rejects a wrong sequence. With `committed` the
   * query reads only data that no failover rolls back. Calls for readers must set `committed`.
   */
  async function ends(
    conversationIds: string[],
    { committed: onlyCommitted = false }: { committed?: boolean } = {},
  ): Promise<Map<string, LogEnd>> {
    if (conversationIds.length === 0) return new Map()
    const options = onlyCommitted ? committed : {}
    const rows = await edges(conversationIds, { order: -1, fields: ['sequence', 'closed', 'waitingSince'], options })
    return new Map(
      rows.map(({ _id, sequence, closed, waitingSince }) => [
        _id,
        { sequence, closed: closed === true, ...(waitingSince && { waitingSince }) },
      ]),
    )
  }

  return {
    /**
     * Writes a batch with at most one event of each conversation. With two events of a conversation,
     * the store could keep the second and refuse the first. Another process could then write an event
     * with the first one's sequence after readers have passed that sequence. If the call throws, it
     * is unknown which events were written.
     */
    async insert(batch: LogEvent[]) {
      const outcomes: InsertOutcome[] = batch.map(() => 'inserted')
      try {
        const documents = batch.map((event) => ({ ...event, message: isCompletion(event) ? undefined : event.message }))
        // For one document, `insertOne` costs the driver and the database less than `insertMany`.
        if (documents.length === 1) await events.insertOne(documents[0]!)
        else await events.insertMany(documents, { ordered: false })
      } catch (error) {
        for (const [index, outcome] of rejections(error)) outcomes[index] = outcome
      }
      return outcomes
    },

    /** Returns the events of these operations, in any order. */
    async findOperations(operations: { conversationId: string; operationKey: OperationKey }[]): Promise<LogEvent[]> {
      return (await events.find({ $or: operations }, committed).toArray()).map(toEvent)
    },

    ends,
    /**
     * Returns the events after a sequence, in order. Transient events are included only on request.
     */
    async readAfter(
      { conversationId, after }: Range,
      limit: number,
      { transient = false }: { transient?: boolean } = {},
    ) {
      const found = events.find({ conversationId, sequence: { $gt: after }, ...(transient ? {} : lasting) }, committed)
      return withTexts(events, (await found.sort({ sequence: 1 }).limit(limit).toArray()).map(toEvent))
    },

    /**
     * Returns the events after a sequence in each of many conversations, in order within each
     * conversation. `limit` is the maximum for all conversations together.
     */
    async readManyAfter(ranges: Range[], limit: number, { transient = false }: { transient?: boolean } = {}) {
      // The database makes a query plan for each alternative of `$or`. A plan costs as much as the
      // read. So ranges with the same start share one alternative.
      const places = Map.groupBy(ranges, ({ after }) => after)
      const alternatives = [...places].map(([after, together]) => ({
        conversationId: { $in: together.map(({ conversationId }) => conversationId) },
        sequence: { $gt: after },
      }))
      const found = events.find({ $or: alternatives, ...(transient ? {} : lasting) }, committed)
      return withTexts(
        events,
        (await found.sort({ conversationId: 1, sequence: 1 }).limit(limit).toArray()).map(toEvent),
      )
    },

    /** Returns the events with these sequences, in any order. */
    async at(places: { conversationId: string; sequence: number }[]): Promise<LogEvent[]> {
      return places.length === 0 ? [] : (await events.find({ $or: places }, committed).toArray()).map(toEvent)
    },

    /** Counts the events after a sequence, without transient ones. Stops counting at `limit`. */
    countAfter({ conversationId, after }: Range, limit: number) {
      return events.countDocuments({ conversationId, sequence: { $gt: after }, ...lasting }, { ...committed, limit })
    },

    historyPage: createHistoryPages(events, (ids) => ends(ids, { committed: true }), committed),
    /** Returns the events of these types in a range, in order. */
    async ofTypes(
      types: EventType[],
      { conversationId, after, before }: Range & { before?: number },
      limit: number,
    ): Promise<LogEvent[]> {
      const sequence = { $gt: after, ...(before !== undefined && { $lt: before }) }
      const found = events.find({ conversationId, sequence, type: { $in: types } }, committed)
      return (await found.sort({ sequence: 1 }).limit(limit).toArray()).map(toEvent)
    },

    /** Returns the newest events of these types up to a sequence, the newest first. */
    async newestOf(
      types: EventType[],
      { conversationId, through }: { conversationId: string; through: number },
      limit: number,
    ): Promise<LogEvent[]> {
      const found = events.find({ conversationId, sequence: { $lte: through }, type: { $in: types } }, committed)
      return (await found.sort({ sequence: -1 }).limit(limit).toArray()).map(toEvent)
    },

    async firstMessage(conversationId: string): Promise<LogEvent | undefined> {
      const [first] = await events
        .find({ conversationId, ...isMessage }, committed)
        .sort({ sequence: 1 })
        .limit(1)
        .toArray()
      return first && toEvent(first)
    },

    /** Returns the oldest stored event of each conversation. */
    async starts(conversationIds: string[]): Promise<Map<string, LogStart>> {
      const fields = ['sequence' as const, 'occurredAt' as const, 'transient' as const]
      return byKey(await edges(conversationIds, { order: 1, fields, options: committed }), ({ _id }) => _id)
    },

    /**
     * Returns the sequence of the oldest event at or after the time `since`; 0 when there is none.
     * Ignores transient events. With `newest`, searches only the last `newest` events.
     */
    async oldestSequence(conversationId: string, { since, newest }: { since: Date; newest?: number | undefined }) {
      const options = { ...committed, projection: { _id: 0, sequence: 1 } }
      const newestOnes = events.find({ conversationId, ...lasting }, options).sort({ sequence: -1 })
      const [edge] =
        newest === undefined
          ? []
          : await newestOnes
              .skip(newest - 1)
              .limit(1)
              .toArray()
      const sequence = { $gte: edge?.sequence ?? 0 }
      const inWindow = { conversationId, sequence, occurredAt: { $gte: since }, ...lasting }
      const [oldest] = await events.find(inWindow, options).sort({ sequence: 1 }).limit(1).toArray()
      return oldest?.sequence ?? 0
    },

    /**
     * Reads at most `limit` events that are due for removal, oldest first. Returns their
     * conversations, and in `seen` the number of events read.
     */
    async dueTransient(before: Date, limit: number): Promise<{ conversationIds: string[]; seen: number }> {
      const found = await events
        .find({ removableAt: { $lte: before } }, { projection: { _id: 0, conversationId: 1 } })
        .sort({ removableAt: 1 })
        .limit(limit)
        .toArray()
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

    /** Returns the messages, closings and ratings that all processes wrote since a time, in any order. */
    async *activitySince(time: Date): AsyncIterable<LogEvent> {
      const from = ObjectId.createFromTime(Math.floor(time.getTime() / 1000))
      const activity = {
        $or: [
          isMessage,
          {
            type: {
              $in: [
                'conversation.closed',
                'conversation.reopened',
                'human.requested',
                'rating.given',
                'form.submitted',
              ] as const,
            },
          },
        ],
      }
      for await (const document of events.find({ _id: { $gte: from }, ...activity })) yield toEvent(document)
    },
  }
}

export type EventStore = ReturnType<typeof createEventStore>

export const eventsOf = perCore(({ db }) => createEventStore(db))

/** Adds to each event `message.completed` the message that it completes, with its present text. */
export async function withTexts(events: Collection<EventDocument>, found: LogEvent[]): Promise<LogEvent[]> {
  const completions = found.filter(isCompletion)
  if (completions.length === 0) return found
  const places = completions.map(({ conversationId, messageSequence = 0 }) => ({
    conversationId,
    sequence: messageSequence,
  }))
  const begun = await events.find({ $or: places }, committed).toArray()
  const messages = new Map(begun.map((each) => [`${each.conversationId} ${each.sequence}`, each.message]))
  return found.map((event) => {
    const message = isCompletion(event) && messages.get(`${event.conversationId} ${event.messageSequence}`)
    return message ? { ...event, message } : event
  })
}

/**
 * Reads only events that a majority of the servers has. A failover must not roll back an event that
 * a reader has seen.
 */
const committed = { readConcern: { level: 'majority' } } as const

/**
 * Returns the index of each rejected event and the reason. If `error` has a cause other than
 * rejected events, throws it again.
 */
function rejections(error: unknown): [number, InsertOutcome][] {
  const failures = failuresOf(error)
  // The driver also reports a broken connection as a failed write. In that case no outcome is known.
  if (failures.length === 0) throw error
  return failures.map((failure) => [failure.index, outcomeOf(failure, error)])
}

function failuresOf(error: unknown): { index: number; code?: unknown; errmsg?: unknown }[] {
  if (error instanceof MongoBulkWriteError) return hasWriteConcernError(error.result) ? [] : [error.writeErrors].flat()
  if (!isDuplicateKey(error)) return []
  const { code, errmsg } = error as MongoServerError
  return [{ index: 0, code, errmsg }]
}

function outcomeOf(failure: { code?: unknown; errmsg?: unknown }, error: unknown): InsertOutcome {
  const name = duplicateIndex(failure)
  if (name === 'by_sequence') return 'sequence_taken'
  if (name === 'by_operation') return 'operation_taken'
  throw error
}

function hasWriteConcernError(result: BulkWriteResult) {
  return result.getWriteConcernError() !== undefined
}
