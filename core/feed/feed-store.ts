import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../mongodb/faults.ts'
import type { FeedEntry, NewFeedEntry } from './model.ts'

/** An entry. Without its source if the source was removed: only the place stays. */
export type FeedEntryDocument = Partial<NewFeedEntry> &
  Pick<NewFeedEntry, 'type' | 'occurredAt'> & { workspaceId: string; number: number; storedAt: Date }

/** All reads are of data that no failover rolls back, so no number is read and then given again. */
const committed = { readConcern: { level: 'majority' } } as const
const removedAtOnce = 1_000

export interface FeedStore {
  /** Returns the last number of a feed; 0 if the feed is empty. */
  end(workspaceId: string): Promise<number>
  /** Returns those of the entries that the feed does not have. */
  missing(workspaceId: string, entries: NewFeedEntry[]): Promise<NewFeedEntry[]>
  /**
   * Adds entries with the numbers after `end`, in order, up to the first whose number or source is
   * taken. Returns whether all were added.
   */
  insert(workspaceId: string, end: number, entries: NewFeedEntry[], at: Date): Promise<boolean>
  /** Returns the sequence of the newest entry of each conversation. */
  newestOf(conversationIds: string[]): Promise<Map<string, number>>
  /** Returns the number of the last entry that was stored before a time; 0 if there is none. */
  lastBefore(workspaceId: string, time: Date): Promise<number>
  /** Returns the entries after a number, in order. */
  after(workspaceId: string, number: number, limit: number): Promise<FeedEntry[]>
  /**
   * Removes the entries that were stored before a time, oldest first. The last entry of a feed stays,
   * because its number would be given again.
   */
  removeBefore(time: Date): Promise<void>
}

export function createFeedStore({ feedEntries }: { feedEntries: Collection<FeedEntryDocument> }): FeedStore {
  async function end(workspaceId: string) {
    const newest = feedEntries.find({ workspaceId }, { ...committed, projection: { _id: 0, number: 1 } })
    return (await newest.sort({ number: -1 }).limit(1).toArray())[0]?.number ?? 0
  }

  return {
    end,

    async missing(workspaceId, entries) {
      const source = { $in: entries.map((entry) => entry.source) }
      const options = { ...committed, projection: { _id: 0, source: 1 } }
      const found = await feedEntries.find({ workspaceId, source }, options).toArray()
      const known = new Set(found.map((entry) => entry.source))
      return entries.filter((entry) => !known.has(entry.source))
    },

    async insert(workspaceId, end, entries, at) {
      const documents = entries.map((entry, index) => ({
        ...entry,
        workspaceId,
        number: end + 1 + index,
        storedAt: at,
      }))
      try {
        await feedEntries.insertMany(documents, { ordered: true })
        return true
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },

    async newestOf(conversationIds) {
      const rows = await feedEntries
        .aggregate<{ _id: string; sequence: number }>(
          [
            { $match: { conversationId: { $in: conversationIds } } },
            { $sort: { conversationId: -1, sequence: -1 } },
            { $group: { _id: '$conversationId', sequence: { $first: '$sequence' } } },
          ],
          committed,
        )
        .toArray()
      return new Map(rows.map(({ _id, sequence }) => [_id, sequence]))
    },

    async lastBefore(workspaceId, time) {
      const from = async (number: number) => {
        const options = { ...committed, projection: { _id: 0, number: 1, storedAt: 1 }, sort: { number: 1 } } as const
        return feedEntries.findOne({ workspaceId, number: { $gte: number } }, options)
      }
      // Numbers are consecutive and grow with the time, so the search halves the range.
      let last = ((await from(1))?.number ?? 1) - 1
      for (let high = await end(workspaceId); last < high; ) {
        const middle = Math.ceil((last + high) / 2)
        const entry = await from(middle)
        if (entry && entry.storedAt < time) last = middle
        else high = middle - 1
      }
      return last
    },

    async after(workspaceId, number, limit) {
      const found = feedEntries.find(
        { workspaceId, number: { $gt: number } },
        { ...committed, projection: { _id: 0, workspaceId: 0, storedAt: 0 } },
      )
      return found.sort({ number: 1 }).limit(limit).toArray()
    },

    async removeBefore(time) {
      const old = feedEntries.aggregate<{ _id: string; oldest: number; newest: number }>([
        { $match: { storedAt: { $lt: time } } },
        { $group: { _id: '$workspaceId', oldest: { $min: '$number' }, newest: { $max: '$number' } } },
      ])
      for await (const { _id: workspaceId, oldest, newest } of old) {
        const last = Math.min(newest, (await end(workspaceId)) - 1)
        for (let from = oldest; from <= last; from += removedAtOnce) {
          const number = { $gte: from, $lte: Math.min(last, from + removedAtOnce - 1) }
          await feedEntries.deleteMany({ workspaceId, number })
        }
      }
    },
  }
}
