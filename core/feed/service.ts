import type { Slots } from '../../platform/concurrency/slots.ts'
import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { DeliveryService } from '../deliveries/service.ts'
import type { EventFollowerStore } from '../destinations/event-follower-store.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import type { LeadService, SuppressionService } from '../leads/service.ts'
import type { EventStore } from '../log/event-store.ts'
import type { FollowerStore } from '../log/follower-store.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { WakeupService } from '../wakeups/service.ts'
import { createConversationFeed } from './conversation-feed.ts'
import { createEventFanOut } from './event-fan-out.ts'
import { createFeedReader } from './feed-reader.ts'
import type { FeedSourceStore } from './feed-source-store.ts'
import type { FeedStore } from './feed-store.ts'
import { createFeedWriter, feedHint } from './feed-writer.ts'
import { createLeadFeed } from './lead-feed.ts'
import type { LeadFeedStore } from './lead-feed-store.ts'
import { feedKeptMs } from './model.ts'

const flushEveryMs = 1_000
/** Interval in milliseconds at which a core looks for what other cores have left out. */
const catchUpEveryMs = 60_000
const removeEveryMs = 3_600_000

export function createFeedService(
  { bus, history, logger, now }: Core,
  stores: {
    feed: FeedStore
    feedSources: FeedSourceStore
    leadFeed: LeadFeedStore
    leadSubscriptions: LeadSubscriptionStore
    eventFollowers: EventFollowerStore
    events: EventStore
    sessions: SessionStore
    followers: FollowerStore
  },
  reads: Slots,
  { wakeups }: WakeupService,
  { suppressions }: SuppressionService,
  { liveSubscriptions, deliveryIntake: intake, deliverySettings: settings }: DeliveryService,
  { leads: { enterForm } }: LeadService,
) {
  const { feed: store, feedSources: sources, leadSubscriptions: subscriptions, events, sessions, followers } = stores

  function announce(workspaceId: string) {
    fanOut.added(workspaceId)
    wakeups
      .hint(feedHint(workspaceId))
      .catch((error: Error) => logger.warn({ reason: error.name }, 'sending the wake-up of a feed failed'))
  }
  const add = createFeedWriter(store, { announce, now })
  const feedReader = createFeedReader({ store, sources, events, reads, bus, history })
  const { withContent } = feedReader
  const parts = { liveSubscriptions, suppressions, intake, settings }
  const fanOut = createEventFanOut({ store, withContent, followerStore: stores.eventFollowers, ...parts, now })
  const isAwaited = (workspaceId?: string) => feedReader.isRead(workspaceId) || fanOut.isFollowed(workspaceId)
  const conversations = createConversationFeed({
    store,
    add,
    events,
    sources,
    sessions,
    followers,
    isAwaited,
    bus,
    logger,
    now,
  })
  const leads = createLeadFeed({ store: stores.leadFeed, subscriptions, enterForm, add, now })
  const jobs = [
    { name: 'feed of conversations', everyMs: flushEveryMs, run: conversations.flush },
    { name: 'feed of leads', everyMs: catchUpEveryMs, run: leads.announce },
    { name: 'catch-up of the feed', everyMs: catchUpEveryMs, run: conversations.catchUp },
    { name: 'fan-out of the feed', everyMs: flushEveryMs, run: fanOut.flush },
    { name: 'catch-up of the fan-out', everyMs: catchUpEveryMs, run: fanOut.catchUp },
    {
      name: 'removal of old feed entries',
      everyMs: removeEveryMs,
      run: () => store.removeBefore(new Date(now() - feedKeptMs)),
    },
  ]
  return {
    feedReader,
    /** Adds the entries of the events that were appended or stored before this call, and creates their deliveries. */
    async flushFeed() {
      await conversations.flush()
      await leads.announce()
      await fanOut.flush()
    },
    /** Adds the entries that other processes left out, and creates their deliveries. */
    async catchUpFeed() {
      await conversations.catchUp()
      await fanOut.catchUp()
    },
    jobs: jobs.map((job) => createJob({ ...job, logger })),
    lags: { feed: conversations.lagMs, fan_out: fanOut.lagMs },
    /** Ends the work and the waits. */
    close() {
      feedReader.close()
      conversations.close()
      leads.close()
      fanOut.close()
    },
  }
}

export type FeedService = ReturnType<typeof createFeedService>
