import { type BulkWriteResult, type Collection, MongoBulkWriteError, ObjectId, type WithId } from 'mongodb'
import { duplicateIndex } from '../database/faults.ts'
import { type HistoryPage, type HistoryPageQuery, readHistoryPage } from './history-page-store.ts'
import type { LogEvent } from './model.ts'
import type { OperationKey } from './operation-keys.ts'

export type EventDocument = LogEvent

/** Result for one event of a batch. */
export type InsertOutcome = 'inserted' | 'sequence_taken' | 'operation_taken'

export interface Range {
  conversationId: string
  after: number
}

export interface EventStore {
  /**
   * Writes a batch with at most one event of each conversation. With two, the store could keep the
   * second and refuse the first. Another process would then fill that sequence after readers have
   * passed it. When it throws, each event may or may not be written.
   */
  insert(events: LogEvent[]): Promise<InsertOutcome[]>
  /** The events of these operations, in no order. */
  findOperations(operations: { conversationId: string; operationKey: OperationKey }[]): Promise<LogEvent[]>
  /**
   * The last sequence and the state of each conversation that has events. By default it reads the
   * latest data, which a failover may roll back; this is for writers, whose guess the unique index
   * checks. With `committed` it reads only what no failover rolls back; this is for readers.
   */
  ends(conversationIds: string[], options?: { committed?: boolean }): Promise<Map<string, LogEnd>>
  /** Events after a sequence, in order. Transient events only on request. */
  readAfter(range: Range, limit: number, options?: { transient?: boolean }): Promise<LogEvent[]>
  /**
   * Events after a sequence in each of many conversations, in order within each; at most `limit` in
   * total.
   */
  readManyAfter(ranges: Range[], limit: number, options?: { transient?: boolean }): Promise<LogEvent[]>
  /** The events with these sequences, in no order. */
  at(places: { conversationId: string; sequence: number }[]): Promise<LogEvent[]>
  /** Number of events after a sequence without transient ones, counted up to `limit`. */
  countAfter(range: Range, limit: number): Promise<number>
  historyPage(query: HistoryPageQuery): Promise<HistoryPage>
  /** The conversation's first message. */
  firstMessage(conversationId: string): Promise<LogEvent | undefined>
  /**
   * Sequence of the oldest non-transient event among the `newest` ones since a time; 0 when there
   * is none.
   */
  oldestSequence(conversationId: string, bounds: { since: Date; newest: number }): Promise<number>
  /** Messages and closings written by any process since a time, in no order. */
  activitySince(time: Date): AsyncIterable<LogEvent>
}

export interface LogEnd {
  sequence: number
  closed: boolean
}

export function createEventStore({ events }: { events: Collection<EventDocument> }): EventStore {
  const isMessage = { message: { $exists: true } }
  const lasting = { transient: { $exists: false } }

  return {
    async insert(batch) {
      const outcomes: InsertOutcome[] = batch.map(() => 'inserted')
      try {
        await events.insertMany(
          batch.map((event) => ({ ...event })),
          { ordered: false },
        )
      } catch (error) {
        for (const [index, outcome] of rejections(error)) outcomes[index] = outcome
      }
      return outcomes
    },

    async findOperations(operations) {
      return (await events.find({ $or: operations }, committed).toArray()).map(toEvent)
    },

    async ends(conversationIds, { committed: onlyCommitted = false } = {}) {
      if (conversationIds.length === 0) return new Map()
      // With this sort order the engine jumps in the index from one conversation's end to the next.
      const rows = await events
        .aggregate<{ _id: string; sequence: number; closed: boolean | null }>(
          [
            { $match: { conversationId: { $in: conversationIds } } },
            { $sort: { conversationId: -1, sequence: -1 } },
            { $group: { _id: '$conversationId', sequence: { $first: '$sequence' }, closed: { $first: '$closed' } } },
          ],
          onlyCommitted ? committed : {},
        )
        .toArray()
      return new Map(rows.map(({ _id, sequence, closed }) => [_id, { sequence, closed: closed === true }]))
    },

    async readAfter({ conversationId, after }, limit, { transient = false } = {}) {
      const found = events.find({ conversationId, sequence: { $gt: after }, ...(transient ? {} : lasting) }, committed)
      return (await found.sort({ sequence: 1 }).limit(limit).toArray()).map(toEvent)
    },

    async readManyAfter(ranges, limit, { transient = false } = {}) {
      // The engine plans each alternative separately, which costs as much as reading it. So ranges
      // with the same start are one alternative.
      const places = Map.groupBy(ranges, ({ after }) => after)
      const alternatives = [...places].map(([after, together]) => ({
        conversationId: { $in: together.map(({ conversationId }) => conversationId) },
        sequence: { $gt: after },
      }))
      const found = events.find({ $or: alternatives, ...(transient ? {} : lasting) }, committed)
      return (await found.sort({ conversationId: 1, sequence: 1 }).limit(limit).toArray()).map(toEvent)
    },

    async at(places) {
      return places.length === 0 ? [] : (await events.find({ $or: places }, committed).toArray()).map(toEvent)
    },

    countAfter({ conversationId, after }, limit) {
      return events.countDocuments({ conversationId, sequence: { $gt: after }, ...lasting }, { ...committed, limit })
    },

    historyPage: (query) => readHistoryPage(events, query, committed),

    async firstMessage(conversationId) {
      const [first] = await events
        .find({ conversationId, ...isMessage }, committed)
        .sort({ sequence: 1 })
        .limit(1)
        .toArray()
      return first && toEvent(first)
    },

    async oldestSequence(conversationId, { since, newest }) {
      const options = { ...committed, projection: { _id: 0, sequence: 1 } }
      const [edge] = await events
        .find({ conversationId, ...lasting }, options)
        .sort({ sequence: -1 })
        .skip(newest - 1)
        .limit(1)
        .toArray()
      const sequence = { $gte: edge?.sequence ?? 0 }
      const inWindow = { conversationId, sequence, occurredAt: { $gte: since }, ...lasting }
      const [oldest] = await events.find(inWindow, options).sort({ sequence: 1 }).limit(1).toArray()
      return oldest?.sequence ?? 0
    },

    async *activitySince(time) {
      const from = ObjectId.createFromTime(Math.floor(time.getTime() / 1000))
      const activity = { $or: [isMessage, { type: 'conversation.closed' as const }] }
      for await (const document of events.find({ _id: { $gte: from }, ...activity })) yield toEvent(document)
    },
  }
}

/** A failover must not roll back what a reader has seen. */
const committed = { readConcern: { level: 'majority' } } as const

function toEvent({ _id, ...event }: WithId<EventDocument>): LogEvent {
  return event
}

/** Which events of a batch were rejected and why. Throws if the error has any other cause. */
function rejections(error: unknown): [number, InsertOutcome][] {
  if (!(error instanceof MongoBulkWriteError) || hasWriteConcernError(error.result)) throw error
  const failures = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors]
  // The driver also throws this error for a broken connection. Then no outcome is known.
  if (failures.length === 0) throw error
  return failures.map(({ index, code, errmsg }) => {
    const name = duplicateIndex({ code, errmsg })
    if (name === 'by_sequence') return [index, 'sequence_taken']
    if (name === 'by_operation') return [index, 'operation_taken']
    throw error
  })
}

function hasWriteConcernError(result: BulkWriteResult): boolean {
  return result.getWriteConcernError() !== undefined
}
