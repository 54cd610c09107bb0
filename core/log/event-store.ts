import { type BulkWriteResult, type Collection, MongoBulkWriteError, ObjectId, type WithId } from 'mongodb'
import { duplicateIndex } from '../database/faults.ts'
import { type HistoryPage, type HistoryPageQuery, readHistoryPage } from './history-page-store.ts'
import type { LogEvent } from './model.ts'
import type { OperationKey } from './operation-keys.ts'

export type EventDocument = LogEvent

/** What became of one event of a batch. */
export type InsertOutcome = 'inserted' | 'sequence_taken' | 'operation_taken'

export interface Range {
  conversationId: string
  after: number
}

export interface EventStore {
  /**
   * Writes a batch, at most one event for each conversation: a second one could be kept while the first is refused, and
   * so leave a place in the log that another process fills after readers have passed it.
   * When it throws, each event may be written or not.
   */
  insert(events: LogEvent[]): Promise<InsertOutcome[]>
  /** The events that operations left behind, in no order. */
  findOperations(operations: { conversationId: string; operationKey: OperationKey }[]): Promise<LogEvent[]>
  /**
   * The last event's place in each conversation that has one, with what it says of the conversation. By the latest that is
   * known, for a writer's guess: the unique index decides, and what a failover takes back it takes with all that came
   * after. `committed` for a reader: only what no failover takes back.
   */
  ends(conversationIds: string[], options?: { committed?: boolean }): Promise<Map<string, LogEnd>>
  /** Events after a place, in order; transient ones only if asked for. */
  readAfter(range: Range, limit: number, options?: { transient?: boolean }): Promise<LogEvent[]>
  /** Events after a place in each of many conversations, in order within each; up to `limit` in all. */
  readManyAfter(ranges: Range[], limit: number, options?: { transient?: boolean }): Promise<LogEvent[]>
  /** The events at these places, in no order. */
  at(places: { conversationId: string; sequence: number }[]): Promise<LogEvent[]>
  /** How many events that are not transient lie after a place, counted up to `limit`. */
  countAfter(range: Range, limit: number): Promise<number>
  historyPage(query: HistoryPageQuery): Promise<HistoryPage>
  /** The conversation's first message. */
  firstMessage(conversationId: string): Promise<LogEvent | undefined>
  /** Sequence of the oldest event that is not transient, among the newest ones that came since; 0 when there is none. */
  oldestSequence(conversationId: string, bounds: { since: Date; newest: number }): Promise<number>
  /** Messages and closings written since, by any process, in no order. */
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
        for (const [index, outcome] of refusals(error)) outcomes[index] = outcome
      }
      return outcomes
    },

    async findOperations(operations) {
      return (await events.find({ $or: operations }, committed).toArray()).map(toEvent)
    },

    async ends(conversationIds, { committed: onlyCommitted = false } = {}) {
      if (conversationIds.length === 0) return new Map()
      // Sorted as the index runs backwards, so that the engine jumps from one conversation's end to the next one's.
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
      // The engine plans each alternative by itself, which costs as much as reading it: those that begin at one place are one.
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

/** What a reader is shown must not be taken back by a failover. */
const committed = { readConcern: { level: 'majority' } } as const

function toEvent({ _id, ...event }: WithId<EventDocument>): LogEvent {
  return event
}

/** Which events of a batch were refused, and why; throws when that is not all that went wrong. */
function refusals(error: unknown): [number, InsertOutcome][] {
  if (!(error instanceof MongoBulkWriteError) || hasWriteConcernError(error.result)) throw error
  const failures = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors]
  // So the driver also wraps a connection that broke: then nothing is known of any of them.
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
