import { createJob, type Job } from '../concurrency/job.ts'
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
export function feedJobs(core: Core): Job[] {
  feedReaderOf(core)
  const [conversations, leads, fanOut] = [conversationFeedOf(core), leadFeedOf(core), eventFanOutOf(core)]
  return [
    { name: 'feed of conversations', everyMs: flushEveryMs, run: conversations.flush },
    ...marks.map((what) => ({ name: `feed of ${what}`, everyMs: catchUpEveryMs, run: leads.followers[what].run })),
    { name: 'catch-up of the feed', everyMs: catchUpEveryMs, run: conversations.catchUp },
    { name: 'fan-out of the feed', everyMs: flushEveryMs, run: fanOut.flush },
    { name: 'catch-up of the fan-out', everyMs: catchUpEveryMs, run: fanOut.catchUp },
    { name: 'removal of old feed entries', everyMs: 3_600_000, run: () => removeOldEntries(core) },
  ].map((job) => createJob({ ...job, logger: core.logger }))
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
