import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { unavailable } from '../errors.ts'
import type { FeedStore } from './feed-store.ts'
import type { AddToFeed, NewFeedEntry } from './model.ts'

/** Maximum number of tries. Other writers take the next number that often only if many compete. */
const maxTries = 100
const maxEnds = 10_000
const pauses = { minMs: 5, maxMs: 100 }

/** Id that a wake-up between cores contains when a feed has new entries. */
export const feedHint = (workspaceId: string) => `feed ${workspaceId}`

/**
 * Adds entries to the feeds. A feed is a log of its own: its numbers are consecutive, and a writer
 * takes a number only if it has read the one before. So a reader that has read a number never finds
 * a new entry at or below it, however late another writer's entry is committed.
 *
 * Several entries are added with one write. The database adds them in order and stops at the first
 * conflict, so no number is left out. The writer then reads the end again, and which entries exist.
 *
 * @param announce tells all cores that a feed has new entries
 */
export function createFeedWriter(
  store: Pick<FeedStore, 'end' | 'missing' | 'insert'>,
  { announce, now }: { announce: (workspaceId: string) => void; now: () => number },
): AddToFeed {
  /** Last numbers that this process has written. No other process reuses a number. */
  const ends = createLruCache<number>(maxEnds)
  return async (workspaceId, entries) => {
    let left: NewFeedEntry[] = entries
    for (let tries = 1; left.length > 0; tries += 1) {
      if (tries > maxTries) throw unavailable()
      const end = ends.get(workspaceId) ?? (await store.end(workspaceId))
      ends.delete(workspaceId)
      if (await store.insert(workspaceId, end, left, new Date(now()))) {
        ends.set(workspaceId, end + left.length)
        break
      }
      left = await store.missing(workspaceId, left)
      if (left.length > 0) await delay(backoffMs(tries, pauses))
    }
    if (entries.length > 0) announce(workspaceId)
  }
}
