import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { EventStore } from '../log/event-store.ts'
import type { FollowerStore } from '../log/follower-store.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { WakeupService } from '../wakeups/service.ts'
import { createConversationFeed } from './conversation-feed.ts'
import { createFeedReader, type FeedReader } from './feed-reader.ts'
import type { FeedSourceStore } from './feed-source-store.ts'
import type { FeedStore } from './feed-store.ts'
import { createFeedWriter, feedHint } from './feed-writer.ts'
import { createLeadFeed } from './lead-feed.ts'
import type { LeadFeedStore } from './lead-feed-store.ts'
import { type AddToFeed, feedKeptMs } from './model.ts'

export interface FeedService {
  feedReader: FeedReader
  /** Adds the entries of the events that were appended or stored before this call. */
  flushFeed(): Promise<void>
  /** Adds the entries that other processes left out. */
  catchUpFeed(): Promise<void>
  jobs: Job[]
  /** Ends the work and the waits. */
  close(): void
}

const flushEveryMs = 1_000
const announceEveryMs = 500
const catchUpEveryMs = 10_000
const removeEveryMs = 3_600_000

/** Creates the writer of the feeds, which deliveries also need. */
export function createFeedWriterService(
  { logger, now }: CoreKit,
  { feed }: { feed: FeedStore },
  { wakeups }: WakeupService,
): AddToFeed {
  function announce(workspaceId: string) {
    wakeups
      .hint(feedHint(workspaceId))
      .catch((error: Error) => logger.warn({ reason: error.name }, 'sending the wake-up of a feed failed'))
  }
  return createFeedWriter(feed, { announce, now })
}

export function createFeedService(
  { bus, history, logger, now }: CoreKit,
  stores: {
    feed: FeedStore
    feedSources: FeedSourceStore
    leadFeed: LeadFeedStore
    events: EventStore
    sessions: SessionStore
    followers: FollowerStore
  },
  add: AddToFeed,
): FeedService {
  const { feed: store, feedSources: sources, events, sessions, followers } = stores
  const conversations = createConversationFeed({ store, add, events, sources, sessions, followers, bus, logger, now })
  const leads = createLeadFeed({ store: stores.leadFeed, add, now })
  const feedReader = createFeedReader({ store, sources, events, bus, history })
  const jobs = [
    { name: 'feed of conversations', everyMs: flushEveryMs, run: conversations.flush },
    { name: 'feed of leads', everyMs: announceEveryMs, run: leads.announce },
    { name: 'catch-up of the feed', everyMs: catchUpEveryMs, run: conversations.catchUp },
    {
      name: 'removal of old feed entries',
      everyMs: removeEveryMs,
      run: () => store.removeBefore(new Date(now() - feedKeptMs)),
    },
  ]
  return {
    feedReader,
    async flushFeed() {
      await conversations.flush()
      await leads.announce()
    },
    catchUpFeed: conversations.catchUp,
    jobs: jobs.map((job) => createJob({ ...job, logger })),
    close() {
      feedReader.close()
      conversations.close()
      leads.close()
    },
  }
}
