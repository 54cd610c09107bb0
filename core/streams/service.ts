import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { recentEventsOf } from './recent-events.ts'
import { replayWindowOf } from './replay-window.ts'
import { checkEveryMs, streamSubscriptionsOf } from './stream-subscriptions.ts'

const dropOldEveryMs = 60_000

export function createStreamService(core: Core) {
  const { logger } = core
  const streamSubscriptions = streamSubscriptionsOf(core)
  const recentEvents = recentEventsOf(core)
  return {
    replayWindow: replayWindowOf(core),
    streamSubscriptions,
    jobs: [
      createJob({ name: 'check for missed events', everyMs: checkEveryMs, run: streamSubscriptions.checkSome, logger }),
      createJob({
        name: 'drop of old events',
        everyMs: dropOldEveryMs,
        run: async () => recentEvents.dropOld(),
        logger,
      }),
    ],
  }
}

export type StreamService = ReturnType<typeof createStreamService>
