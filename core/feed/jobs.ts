import { createJobs } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { Marked } from '../leads/leads.ts'
import { conversationFeedOf } from './conversation-feed.ts'
import { eventFanOutOf } from './event-fan-out.ts'
import { removeOldEntries } from './feed-log.ts'
import { feedReaderOf } from './feed-reader.ts'
import { leadFeedOf } from './lead-feed.ts'

const flushEveryMs = 1_000
/** Milliseconds between looks for what other cores have left out. */
const catchUpEveryMs = 60_000
const marks: Marked[] = ['leads', 'deliveries', 'subscriptions']

/** Returns the jobs, and makes the parts that follow the bus. */
export function feedJobs(core: Core) {
  feedReaderOf(core)
  const [conversations, leads, fanOut] = [conversationFeedOf(core), leadFeedOf(core), eventFanOutOf(core)]
  return createJobs(core, {
    'feed of conversations': [flushEveryMs, conversations.flush],
    ...Object.fromEntries(
      marks.map((what) => [`feed of ${what}`, [catchUpEveryMs, leads.followers[what].run] as const]),
    ),
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

/** Adds entries of what was appended or stored before this call, and creates the deliveries. */
export async function flushFeed(core: Core) {
  await conversationFeedOf(core).flush()
  for (const what of marks) await leadFeedOf(core).followers[what].run()
  await eventFanOutOf(core).flush()
}

/** Adds entries that other processes left out, and creates the deliveries. */
export async function catchUpFeed(core: Core) {
  await conversationFeedOf(core).catchUp()
  await eventFanOutOf(core).catchUp()
}

export function closeFeed(core: Core) {
  for (const part of [feedReaderOf, conversationFeedOf, leadFeedOf, eventFanOutOf]) part(core).close()
}
