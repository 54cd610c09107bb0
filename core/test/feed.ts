import type { Core } from '../core.ts'
import { conversationFeedOf } from '../feed/conversation-feed.ts'
import { eventFanOutOf } from '../feed/event-fan-out.ts'
import { leadFeedOf } from '../feed/lead-feed.ts'

/** Adds entries of what was appended or stored before this call, and creates the deliveries. */
export async function flushFeed(core: Core) {
  await conversationFeedOf(core).flush()
  for (const { run } of Object.values(leadFeedOf(core).followers)) await run()
  await eventFanOutOf(core).flush()
}

/** Adds entries that other processes left out, and creates the deliveries. */
export async function catchUpFeed(core: Core) {
  await conversationFeedOf(core).catchUp()
  await eventFanOutOf(core).catchUp()
}
