import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { EventStore } from '../log/event-store.ts'
import type { LogService } from '../log/service.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { EpochStore } from './epoch-store.ts'
import { createGrowingTexts } from './growing-texts.ts'
import { createRecentEvents } from './recent-events.ts'
import { createReplayWindow } from './replay-window.ts'
import { createStreamSubscriptions } from './stream-subscriptions.ts'

/**
 * Each core periodically compares the ends of its followed logs with the database. Each run checks
 * a fraction of the logs. So a lost wake-up delays an event by at most `checkEveryMs * checkSteps`.
 * No event is lost.
 */
const checkEveryMs = 300
const checkSteps = 10
const dropOldEveryMs = 60_000

export function createStreamService(
  { config, bus, metrics, logger, now }: Core,
  { events, epochs }: { events: EventStore; epochs: EpochStore },
  { logHeads, wakeups }: LogService & WakeupService,
) {
  const window = { maxEvents: config.REPLAY_WINDOW_EVENTS, maxAge: config.REPLAY_WINDOW_SECONDS }
  // Must subscribe to the bus before the streams, so that a new event is in memory before a stream
  // replays it.
  const recentEvents = createRecentEvents(bus, now)
  const growingTexts = createGrowingTexts({ bus, events, logger })
  const replayWindow = createReplayWindow(events, recentEvents, window, now)
  const streamSubscriptions = createStreamSubscriptions({
    // An end that was read for streams is cached for the writer too, so that an append needs no
    // read.
    events: { ...events, ends: (ids, options) => logHeads.learn(ids, (each) => events.ends(each, options)) },
    bus,
    replayWindow,
    growingTexts,
    metrics,
    logger,
    isKnownEpoch: epochs.isKnown,
    maySend: wakeups.maySend,
    now,
    checkSteps,
  })
  return {
    replayWindow,
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
