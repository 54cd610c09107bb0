import { measureAtScrape } from '../../platform/observability/metrics.ts'
import { createJobs } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { listWorkspaces } from '../workspaces/workspaces.ts'
import { endOverdueGrowth, growthOf } from './growing-messages.ts'
import { inboxOf } from './inbox.ts'
import { inboxWatchOf } from './inbox-watch.ts'
import { sentMarksOf } from './message-states.ts'
import { endOverdueTyping, typingEndsOf } from './typing.ts'
import { tellUnseenMessages } from './unseen-messages.ts'
import { visitorPresenceOf } from './visitor-presence.ts'

/** This core usually knows when something ends. The sweep finds what this core was not told about. */
const sweepEveryMs = 60_000
const missedMessagesEveryMs = 3000
const presenceEveryMs = 250
const measureEveryMs = 10_000
const unseenEveryMs = 30_000
/** Maximum number of workspaces, and of waiting people, that one measurement counts. */
const countedMax = 1_000
/** A visitor whose last message is older does not count as waiting. */
const waitingWithinMs = 12 * 3_600_000

export function conversationJobs(core: Core) {
  // These follow the bus from the start.
  for (const partOf of [inboxOf, inboxWatchOf, typingEndsOf, growthOf]) partOf(core)
  measureAtScrape(core.metrics.peopleWaiting, measureEveryMs, () => measureWaiting(core))
  return createJobs(core, {
    'catch-up of the inbox': [sweepEveryMs, inboxOf(core).catchUp],
    'tell about unseen messages': [unseenEveryMs, () => tellUnseenMessages(core)],
    'end of growing messages': [sweepEveryMs, () => endOverdueGrowth(core)],
    'expire typing': [sweepEveryMs, () => endOverdueTyping(core)],
    'check for missed messages': [missedMessagesEveryMs, inboxWatchOf(core).check],
    'check of visitors’ presence': [presenceEveryMs, visitorPresenceOf(core).check],
  })
}

async function measureWaiting(core: Core) {
  const { db, metrics, now } = core
  const workspaces = await listWorkspaces(core, '', countedMax)
  const waiting = {
    workspaceId: { $in: workspaces.map(({ workspaceId }) => workspaceId) },
    'queue.waitingSince': { $gte: new Date(now() - waitingWithinMs) },
    ...notErasing,
  }
  const since = { 'queue.waitingSince': 1 } as const
  const oldestFirst = { projection: { _id: 0, ...since }, sort: since, limit: countedMax, hint: 'by_waiting' }
  const found = await db.conversations.find(waiting, oldestFirst).toArray()
  const oldest = found[0]?.queue?.waitingSince
  metrics.peopleWaiting.set(found.length)
  metrics.longestWait.set(oldest === undefined ? 0 : (now() - oldest.getTime()) / 1000)
}

/** Resolves when every background write has ended. */
export async function drainConversations(core: Core) {
  await Promise.all([typingEndsOf(core).drain(), sentMarksOf(core).drain()])
}
