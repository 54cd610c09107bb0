import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { FollowerStore } from '../log/follower-store.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { SearchEntryStore } from './search-entry-store.ts'
import { createSearchIndex } from './search-index.ts'

/** Pause in milliseconds between two writes of search entries. */
const flushEveryMs = 1_000
const catchUpEveryMs = 60_000

export function createSearchService(
  { bus, logger, now }: Core,
  {
    searchEntries: store,
    followers,
    sessions,
  }: { searchEntries: SearchEntryStore; followers: FollowerStore; sessions: SessionStore },
) {
  const searchIndex = createSearchIndex({ store, followers, sessions, bus, logger, now })
  return {
    searchIndex,
    jobs: [
      createJob({ name: 'search entries', everyMs: flushEveryMs, run: searchIndex.flush, logger }),
      createJob({ name: 'catch-up of search entries', everyMs: catchUpEveryMs, run: searchIndex.catchUp, logger }),
    ],
  }
}

export type SearchService = ReturnType<typeof createSearchService>
