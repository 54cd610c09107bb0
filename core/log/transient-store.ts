import type { Collection } from 'mongodb'
import type { EventDocument } from './event-store.ts'

export interface TransientEventStore {
  /** Conversations with events that may be removed, oldest first, and the number of events read. */
  due(before: Date, limit: number): Promise<{ conversationIds: string[]; seen: number }>
  /** Ends of logs that no failover rolls back. */
  committedEnds(conversationIds: string[]): Promise<Map<string, number>>
  /** Removes due events before the end of a log. Keeps the end event for good. */
  removeBefore(conversationId: string, end: number, before: Date): Promise<number>
}

export function createTransientEventStore({ events }: { events: Collection<EventDocument> }): TransientEventStore {
  return {
    async due(before, limit) {
      const found = await events
        .find({ removableAt: { $lte: before } }, { projection: { _id: 0, conversationId: 1 } })
        .sort({ removableAt: 1 })
        .limit(limit)
        .toArray()
      return { conversationIds: [...new Set(found.map(({ conversationId }) => conversationId))], seen: found.length }
    },

    async committedEnds(conversationIds) {
      const rows = await events
        .aggregate<{ _id: string; end: number }>(
          [
            { $match: { conversationId: { $in: conversationIds } } },
            { $sort: { conversationId: -1, sequence: -1 } },
            { $group: { _id: '$conversationId', end: { $first: '$sequence' } } },
          ],
          { readConcern: { level: 'majority' } },
        )
        .toArray()
      return new Map(rows.map(({ _id, end }) => [_id, end]))
    },

    async removeBefore(conversationId, end, before) {
      const { deletedCount } = await events.deleteMany({
        conversationId,
        sequence: { $lt: end },
        transient: true,
        // Includes former ends, which have no expiry any more.
        $or: [{ removableAt: { $lte: before } }, { removableAt: { $exists: false } }],
      })
      await events.updateOne(
        { conversationId, sequence: end, removableAt: { $lte: before } },
        { $unset: { removableAt: '' } },
      )
      return deletedCount
    },
  }
}
