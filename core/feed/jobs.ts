import { createJobs } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { conversationFeedOf } from './conversation-feed.ts'
import { eventFanOutOf } from './event-fan-out.ts'
import { removeOldEntries } from './feed-log.ts'
import { feedReaderOf } from './feed-reader.ts'
import { leadFeedOf } from './lead-feed.ts'

const flushEveryMs = 1_000
/** Milliseconds between looks for what other cores have left out. */
const catchUpEveryMs = 60_000

/** Returns the jobs, and makes the parts that follow the bus. */
export function feedJobs(core: Core) {
  feedReaderOf(core)
  const [conversations, fanOut] = [conversationFeedOf(core), eventFanOutOf(core)]
  const { leads, deliveries, subscriptions } = leadFeedOf(core).followers
  return createJobs(core, {
    'feed of conversations': [flushEveryMs, conversations.flush],
    'feed of leads': [catchUpEveryMs, leads.run],
    'feed of deliveries': [catchUpEveryMs, deliveries.run],
    'feed of subscriptions': [catchUpEveryMs, subscriptions.run],
    'catch-up of the feed': [catchUpEveryMs, conversations.catchUp],
    'fan-out of the feed': [flushEveryMs, fanOut.flush],
    'catch-up of the fan-out': [catchUpEveryMs, fanOut.catchUp],
    'removal of old feed entries': [3_600_000, () => removeOldEntries(core)],
  })
}

export const feedLags = (core: Core): Record<string, () => number> => ({
  feed: conversationFeedOf(core).lagMs,
  fan_out: eventFanOutOf(core).lagMs,
  leads: leadFeedOf(core).lagMs,
})
