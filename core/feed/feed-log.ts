import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { endOfFeed } from '../deliveries/subscriptions.ts'
import { unavailable } from '../errors.ts'
import { committed } from '../mongodb/committed.ts'
import { unlessDuplicate } from '../mongodb/faults.ts'
import { type FeedEntry, feedKeptMs, type NewFeedEntry } from './model.ts'

const removedAtOnce = 1_000
/** Other writers take the next number that often only if many compete. */
const maxTries = 100
const maxEnds = 10_000

/** Last numbers that this process has written. No other process reuses a number. */
const endsOf = perCore(() => createLruCache<number>(maxEnds))

/**
 * Adds entries to a feed, in this order, without those that exist. A feed is a log of its own: its numbers
 * are consecutive, and a writer takes a number only if it has read the one before. So no entry appears at
 * or below a number that was read, however late it is committed. One ordered write stops at the first
 * conflict and leaves no number out. Then the end is read again, and which entries exist.
 */
export async function appendToFeed(core: Core, workspaceId: string, entries: NewFeedEntry[]) {
  const ends = endsOf(core)
  let left = entries
  for (let tries = 1; left.length > 0; tries += 1) {
    if (tries > maxTries) throw unavailable()
    const end = ends.get(workspaceId) ?? (await endOfFeed(core, workspaceId))
    ends.delete(workspaceId)
    if (await insertAfter(core, workspaceId, end, left)) {
      ends.set(workspaceId, end + left.length)
      break
    }
    left = await withoutPresent(core, workspaceId, left)
    if (left.length > 0) await delay(backoffMs(tries, { minMs: 5, maxMs: 100 }))
  }
}

/**
 * Adds entries after `end` up to the first whose number or source is taken. Returns whether all were added.
 */
async function insertAfter({ db, now }: Core, workspaceId: string, end: number, entries: NewFeedEntry[]) {
  const storedAt = new Date(now())
  const documents = entries.map((entry, index) => ({ ...entry, workspaceId, number: end + 1 + index, storedAt }))
  return (await unlessDuplicate(db.feedEntries.insertMany(documents, { ordered: true }))) !== undefined
}

async function withoutPresent({ db }: Core, workspaceId: string, entries: NewFeedEntry[]) {
  const source = { $in: entries.map((entry) => entry.source) }
  const options = { ...committed, projection: { _id: 0, source: 1 } }
  const found = await db.feedEntries.find({ workspaceId, source }, options).toArray()
  const known = new Set(found.map((entry) => entry.source))
  return entries.filter((entry) => !known.has(entry.source))
}

/** Returns the sequence of the newest entry of each conversation. */
export async function newestOf({ db }: Core, conversationIds: string[]): Promise<Map<string, number>> {
  const rows = await db.feedEntries
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
}

/** Returns the number of the last entry before a time; 0 for none. */
export async function lastBefore(core: Core, workspaceId: string, time: Date): Promise<number> {
  const options = { ...committed, projection: { _id: 0, number: 1, storedAt: 1 }, sort: { number: 1 } } as const
  const from = (number: number) => core.db.feedEntries.findOne({ workspaceId, number: { $gte: number } }, options)
  // Numbers grow with the time, so the search halves the range.
  let last = ((await from(1))?.number ?? 1) - 1
  for (let high = await endOfFeed(core, workspaceId); last < high; ) {
    const middle = Math.ceil((last + high) / 2)
    const entry = await from(middle)
    if (entry && entry.storedAt < time) last = middle
    else high = middle - 1
  }
  return last
}

export function entriesAfter({ db }: Core, workspaceId: string, number: number, limit: number): Promise<FeedEntry[]> {
  const projection = { _id: 0, workspaceId: 0, storedAt: 0 }
  const oldest = { ...committed, projection, sort: { number: 1 }, limit } as const
  return db.feedEntries.find({ workspaceId, number: { $gt: number } }, oldest).toArray()
}

/** The last entry of a feed stays, because its number would be given again. */
export async function removeOldEntries(core: Core, before = dateOf(core, -feedKeptMs)) {
  const { feedEntries } = core.db
  const old = feedEntries.aggregate<{ _id: string; oldest: number; newest: number }>([
    { $match: { storedAt: { $lt: before } } },
    { $group: { _id: '$workspaceId', oldest: { $min: '$number' }, newest: { $max: '$number' } } },
  ])
  for await (const { _id: workspaceId, oldest, newest } of old) {
    const last = Math.min(newest, (await endOfFeed(core, workspaceId)) - 1)
    for (let from = oldest; from <= last; from += removedAtOnce) {
      const number = { $gte: from, $lte: Math.min(last, from + removedAtOnce - 1) }
      await feedEntries.deleteMany({ workspaceId, number })
    }
  }
}
