import { randomUUID } from 'node:crypto'
import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { createLogHeads } from './log-heads.ts'
import { createReplayWindow, type ReplayWindow } from './replay-window.ts'
import { createStreamSubscriptions, type StreamSubscriptions } from './stream-subscriptions.ts'
import { createTransientSweep, type TransientSweep } from './transient-sweep.ts'
import { createWakeups, type Wakeups } from './wakeups.ts'

/** The event log, its streams, and the wake-ups between the cores. */
export interface LogService {
  log: EventLog
  replayWindow: ReplayWindow
  subscriptions: StreamSubscriptions
  transientSweep: TransientSweep
  wakeups: Wakeups
  jobs: Job[]
}

/**
 * Each core compares the logs that it follows with their ends in the database, some in each run. A
 * lost wake-up delays an event by at most `checkEveryMs * checkSteps`. No event is lost.
 */
const checkEveryMs = 300
const checkSteps = 10

export function createLogService({ config, stores, bus, metrics, logger, now }: CoreKit): LogService {
  const { events } = stores
  const transientMs = config.TRANSIENT_EVENT_SECONDS * 1000
  const heads = createLogHeads(events, { now, rememberMs: transientMs / 6 })
  bus.on('advanced', heads.advance)

  const wakeups = createWakeups({ store: stores.wakeups, processId: randomUUID(), bus, logger, metrics, now })
  const log = createEventLog({
    store: events,
    heads,
    metrics,
    now,
    transientMs,
    onAppended: (event) => bus.emit('appended', event),
  })
  const window = { maxEvents: config.REPLAY_WINDOW_EVENTS, maxAge: config.REPLAY_WINDOW_SECONDS }
  const replayWindow = createReplayWindow(events, window, now)
  const subscriptions = createStreamSubscriptions({
    // Ends read for streams are cached for the writer too, so that an append needs no read.
    events: { ...events, ends: (ids, options) => heads.learn(ids, (each) => events.ends(each, options)) },
    bus,
    replayWindow,
    metrics,
    logger,
    now,
    checkSteps,
  })
  const transientSweep = createTransientSweep({ store: stores.transientEvents, now })

  async function sweep() {
    for (let more = true; more; ) ({ more } = await transientSweep.sweep())
  }

  return {
    log,
    replayWindow,
    subscriptions,
    transientSweep,
    wakeups,
    jobs: [
      createJob({ name: 'check for missed events', everyMs: checkEveryMs, run: subscriptions.checkSome, logger }),
      createJob({
        name: 'sweep of transient events',
        everyMs: config.TRANSIENT_SWEEP_SECONDS * 1000,
        run: sweep,
        logger,
      }),
    ],
  }
}
