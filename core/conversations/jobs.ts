import { measureAtScrape } from '../../platform/observability/metrics.ts'
import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { workspaceStoreOf } from '../workspaces/workspace-store.ts'
import { assignmentEvents } from './assignments.ts'
import { botEvents } from './bots.ts'
import { endOverdueGrowth, growthOf } from './growing-messages.ts'
import { inboxOf } from './inbox.ts'
import { inboxWatchOf } from './inbox-watch.ts'
import { reconcileMessageStates, sentMarksOf } from './message-states.ts'
import { isRedaction } from './model.ts'
import { applyRedactions } from './redactions.ts'
import { reconcileStates } from './state-events.ts'
import { tagEvents } from './tags.ts'
import { endOverdueTyping, typingEndsOf } from './typing.ts'
import { tellUnseenMessages } from './unseen-messages.ts'
import { visitorPresenceOf } from './visitor-presence.ts'

/** Interval in milliseconds at which a core looks for what it was not told to end. */
const sweepEveryMs = 60_000
const reconcileEveryMs = 30_000
const missedMessagesEveryMs = 3000
const presenceEveryMs = 200
const measureEveryMs = 10_000
const unseenEveryMs = 30_000
/** Maximum number of workspaces, and of waiting people, that one measurement counts. */
const countedMax = 1_000
/** A visitor whose last message is older does not count as waiting. */
const waitingWithinMs = 12 * 3_600_000

export function conversationJobs(core: Core) {
  const { logger, metrics } = core
  // These follow the bus from the start.
  for (const partOf of [inboxOf, inboxWatchOf, typingEndsOf, growthOf]) partOf(core)
  measureAtScrape(metrics.peopleWaiting, measureEveryMs, () => measureWaiting(core))
  return [
    createJob({
      name: 'tell about unseen messages',
      everyMs: unseenEveryMs,
      run: () => tellUnseenMessages(core),
      logger,
    }),
    createJob({
      name: 'end of growing messages',
      everyMs: sweepEveryMs,
      run: () => endOverdueGrowth(core),
      logger,
    }),
    createJob({ name: 'expire typing', everyMs: sweepEveryMs, run: () => endOverdueTyping(core), logger }),
    createJob({
      name: 'reconcile conversations',
      everyMs: reconcileEveryMs,
      run: () => reconcileConversations(core),
      logger,
    }),
    createJob({
      name: 'check for missed messages',
      everyMs: missedMessagesEveryMs,
      run: inboxWatchOf(core).check,
      logger,
    }),
    createJob({
      name: 'check of visitors’ presence',
      everyMs: presenceEveryMs,
      run: visitorPresenceOf(core).check,
      logger,
    }),
  ]
}

/** Completes what dead processes began. */
async function reconcileConversations(core: Core) {
  await applyRedactions(core, (await reconcileMessageStates(core)).filter(isRedaction))
  await reconcileStates(core, assignmentEvents)
  await reconcileStates(core, botEvents)
  await reconcileStates(core, tagEvents)
}

async function measureWaiting(core: Core) {
  const { db, metrics, now } = core
  const workspaces = await workspaceStoreOf(core).listWorkspaces('', countedMax)
  const waiting = {
    workspaceId: { $in: workspaces.map(({ workspaceId }) => workspaceId) },
    'queue.waitingSince': { $gte: new Date(now() - waitingWithinMs) },
    ...notErasing,
  }
  const found = await db.conversations
    .find(waiting, { projection: { _id: 0, 'queue.waitingSince': 1 }, hint: 'by_waiting' })
    .sort({ 'queue.waitingSince': 1 })
    .limit(countedMax)
    .toArray()
  const [oldest] = found
  metrics.peopleWaiting.set(found.length)
  metrics.longestWait.set(oldest === undefined ? 0 : (now() - oldest.queue!.waitingSince!.getTime()) / 1000)
}

/** Resolves when every background write has ended. */
export async function drainConversations(core: Core) {
  await Promise.all([typingEndsOf(core).drain(), sentMarksOf(core).drain()])
}
