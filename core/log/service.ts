import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { EpochStore } from './epoch-store.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import type { EventStore } from './event-store.ts'
import { createLogHeads } from './log-heads.ts'
import type { ConnectPeer } from './peer-client.ts'
import type { PeerStore } from './peer-store.ts'
import { createPeers, type Peers, refreshEveryMs } from './peers.ts'
import { createRecentEvents } from './recent-events.ts'
import { createReplayWindow, type ReplayWindow } from './replay-window.ts'
import { createStreamSubscriptions, type StreamSubscriptions } from './stream-subscriptions.ts'
import { createTransientSweep, type TransientSweep } from './transient-sweep.ts'
import type { WakeupStore } from './wakeup-store.ts'
import { createWakeups, type Wakeups } from './wakeups.ts'

export interface LogService {
  log: EventLog
  replayWindow: ReplayWindow
  streamSubscriptions: StreamSubscriptions
  transientSweep: TransientSweep
  wakeups: Wakeups
  /**
   * Removes the wake-ups that are older than half a minute. Returns whether none is left. If the
   * newest wake-up is that old, it is left until a later call.
   */
  sweepWakeups(): Promise<boolean>
  peers: Peers
  /** Id of this process in wake-ups and in the register of cores. */
  processId: string
  jobs: Job[]
}

/**
 * Each core periodically compares the ends of its followed logs with the database. Each run checks
 * a fraction of the logs. So a lost wake-up delays an event by at most `checkEveryMs * checkSteps`.
 * No event is lost.
 */
const checkEveryMs = 300
const checkSteps = 10

/** Minimum time that events without replay (typing) stay in the log. */
const transientMs = 3_600_000
const transientSweepEveryMs = 60_000
/**
 * How long wake-ups are kept. Cursors read them within a second. Wake-ups contain ids, so they must
 * be gone within the minute after which a removal ends.
 */
const wakeupsKeptMs = 30_000

export function createLogService(
  { config, bus, metrics, logger, now }: CoreKit,
  {
    events,
    epochs,
    wakeups: wakeupStore,
    peers: peerStore,
  }: { events: EventStore; epochs: EpochStore; wakeups: WakeupStore; peers: PeerStore },
  connectPeer: ConnectPeer,
): LogService {
  const heads = createLogHeads(events, { now, rememberMs: transientMs / 6 })
  bus.on('advanced', heads.advance)

  const processId = randomUUID()
  const peers = createPeers({
    store: peerStore,
    processId,
    url: config.CORE_PEER_URL.replace('$HOSTNAME', hostname()),
    connect: connectPeer,
    metrics,
    logger,
    now,
  })
  const wakeups = createWakeups({ store: wakeupStore, peers, processId, bus, logger, metrics, now })
  const log = createEventLog({
    store: events,
    heads,
    metrics,
    now,
    transientMs,
    onAppended: (event) => bus.emit('appended', event),
  })
  const window = { maxEvents: config.REPLAY_WINDOW_EVENTS, maxAge: config.REPLAY_WINDOW_SECONDS }
  // Must subscribe to the bus before the streams, so that a new event is in memory before a stream
  // replays it.
  const recentEvents = createRecentEvents(bus, now)
  const replayWindow = createReplayWindow(events, recentEvents, window, now)
  const streamSubscriptions = createStreamSubscriptions({
    // An end that was read for streams is cached for the writer too, so that an append needs no
    // read.
    events: { ...events, ends: (ids, options) => heads.learn(ids, (each) => events.ends(each, options)) },
    bus,
    replayWindow,
    metrics,
    logger,
    isKnownEpoch: epochs.isKnown,
    maySend: wakeups.maySend,
    now,
    checkSteps,
  })
  const transientSweep = createTransientSweep({ events, now })

  const sweepWakeups = () => wakeupStore.removeBefore(new Date(now() - wakeupsKeptMs), new Date(now()))

  async function sweep() {
    for (let more = true; more; ) ({ more } = await transientSweep.sweep())
    await sweepWakeups()
    recentEvents.dropOld()
  }

  return {
    log,
    replayWindow,
    streamSubscriptions,
    transientSweep,
    wakeups,
    sweepWakeups,
    peers,
    processId,
    jobs: [
      createJob({ name: 'register of cores', everyMs: refreshEveryMs, run: peers.refresh, logger }),
      createJob({ name: 'check for missed events', everyMs: checkEveryMs, run: streamSubscriptions.checkSome, logger }),
      createJob({
        name: 'sweep of transient events and wake-ups',
        everyMs: transientSweepEveryMs,
        run: sweep,
        logger,
      }),
    ],
  }
}
