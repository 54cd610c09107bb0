import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createJob } from '../concurrency/job.ts'
import { type Core, perCore } from '../core.ts'
import { storedEpochOf } from '../ids.ts'
import { type EventStore, eventsOf } from '../log/event-store.ts'
import { logHeadsOf } from '../log/log-heads.ts'
import { endsSession, type GrowingText, type LogEvent } from '../log-event.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { createFeeds, type Feed } from './feeds.ts'
import { type GrowingTexts, growingTextsOf } from './growing-texts.ts'
import { encodeFor, encodeGrowth, isSentTo, resetRequired, type StreamSession, toStreamEvent } from './model.ts'
import { recentEventsOf } from './recent-events.ts'
import {
  firstPage,
  parseEventId,
  type ReplayWindow,
  replayPage,
  replayWindowOf,
  type StartPoint,
} from './replay-window.ts'
import { createReplays } from './replays.ts'
import { createSessionStreams, noteText, type StreamSubscription, type SubscriptionSink } from './session-streams.ts'

interface SubscriptionObserver {
  opened(subscription: StreamSubscription): void
  /** Called once for each subscription, however it ended. */
  ended(subscription: StreamSubscription): void
}

interface StreamSubscriptionsDependencies {
  events: Pick<EventStore, 'ends' | 'readManyAfter'>
  bus: Bus
  replayWindow: ReplayWindow
  growingTexts?: GrowingTexts
  metrics?: CoreMetrics
  logger: Logger
  /** Whether a log with this stored epoch exists, or an erasure has removed it. */
  isKnownEpoch?: (epoch: string) => Promise<boolean>
  /** Whether streams may send events. `current` is emitted when they may send again. */
  maySend?: () => boolean
  now?: () => number
  checkSteps?: number
}

/**
 * Each core periodically compares the ends of its followed logs with the database. Each run checks
 * a fraction of the logs. So a lost wake-up delays an event by at most `checkEveryMs * checkSteps`.
 * No event is lost.
 */
const checkEveryMs = 300
const checkSteps = 10

/** Whether this is the epoch of an existing log, or of one that an erasure has removed. */
async function isKnownEpoch({ db }: Core, epoch: string) {
  const idOnly = { projection: { _id: 1 } } as const
  const found = [db.conversations.findOne({ epoch }, idOnly), db.erasures.findOne({ epochs: epoch }, idOnly)]
  return (await Promise.all(found)).some((each) => each !== null)
}

const dropOldEveryMs = 60_000

export const streamJobs = (core: Core) => [
  createJob({
    name: 'check for missed events',
    everyMs: checkEveryMs,
    run: streamSubscriptionsOf(core).checkSome,
    logger: core.logger,
  }),
  createJob({
    name: 'drop of old events',
    everyMs: dropOldEveryMs,
    run: async () => recentEventsOf(core).dropOld(),
    logger: core.logger,
  }),
]

export const streamSubscriptionsOf = perCore((core) => {
  const { bus, metrics, logger, now } = core
  const events = eventsOf(core)
  const logHeads = logHeadsOf(core)
  return createStreamSubscriptions({
    // An end that was read for streams is cached for the writer too, so that an append needs no
    // read.
    events: { ...events, ends: (ids, options) => logHeads.learn(ids, (each) => events.ends(each, options)) },
    bus,
    // Its memory of recent events must subscribe to the bus before the streams, so that a new event
    // is in memory before a stream replays it.
    replayWindow: replayWindowOf(core),
    growingTexts: growingTextsOf(core),
    metrics,
    logger,
    isKnownEpoch: (epoch) => isKnownEpoch(core, epoch),
    maySend: wakeupsOf(core).maySend,
    now,
    checkSteps,
  })
})

/**
 * Sends events to subscribers: first a replay from the log, then live events. Each event is sent
 * once to a subscriber (contract, section 4).
 */
export function createStreamSubscriptions({
  events,
  bus,
  replayWindow,
  growingTexts = { in: () => [], follow: () => {} },
  metrics = createCoreMetrics(),
  logger,
  isKnownEpoch = async () => false,
  maySend = () => true,
  now = Date.now,
  checkSteps,
}: StreamSubscriptionsDependencies) {
  const feeds = createFeeds<StreamSubscription>({ events, deliver, metrics, logger, checkSteps })
  const sessionStreams = createSessionStreams({
    feeds,
    replay: (subscription) => void replay(subscription),
    sendNow: (subscription, event) =>
      subscription.sink.event([subscription.id], encodeFor(toStreamEvent(event), subscription.epoch)),
    end,
    now,
  })
  const replay = createReplays({
    replayWindow,
    metrics,
    maySend,
    end,
    onLive(subscription) {
      for (const growing of growingTexts.in(subscription.feed.conversationId)) sendGrowth(growing, [subscription])
    },
  })
  const observers: SubscriptionObserver[] = []

  function close(subscription: StreamSubscription) {
    if (subscription.mode === 'ended') return false
    subscription.mode = 'ended'
    feeds.leave(subscription.feed, subscription)
    sessionStreams.remove(subscription)
    metrics.subscriptionsOpen.dec()
    for (const observer of observers) observer.ended(subscription)
    return true
  }

  function end(subscription: StreamSubscription, error?: unknown) {
    if (close(subscription)) subscription.sink.closed(subscription.id, error)
  }

  function deliver(feed: Feed<StreamSubscription>, appended: LogEvent) {
    growingTexts.follow(appended)
    if (feed.members.size === 0 || !maySend()) return
    const event = toStreamEvent(appended)
    const readers = new Map<SubscriptionSink, { receiving: number[]; skipping: number[] }>()
    const ended: StreamSubscription[] = []
    let epoch = ''
    for (const subscription of feed.members) {
      // The subscription may be ahead of this feed, because another process gave the client its
      // position.
      if (subscription.mode !== 'live' || subscription.isHeld || event.sequence <= subscription.position) continue
      subscription.position = event.sequence
      epoch = subscription.epoch
      let group = readers.get(subscription.sink)
      if (!group) {
        group = { receiving: [], skipping: [] }
        readers.set(subscription.sink, group)
      }
      if (!isSentTo(event, subscription.session)) group.skipping.push(subscription.id)
      else {
        group.receiving.push(subscription.id)
        noteText(subscription, event)
        if (endsSession(event.type)) ended.push(subscription)
      }
    }
    const encoded = encodeFor(event, epoch)
    for (const [sink, { receiving, skipping }] of readers) {
      if (receiving.length > 0) sink.event(receiving, encoded)
      if (skipping.length > 0) sink.advanced(skipping, event.sequence)
    }
    for (const subscription of ended) end(subscription)
  }

  /**
   * Sends what a message has gained to the subscriptions that have its event. Each gets what it has not
   * got, without a gap. A subscription that resumed gets the whole text.
   */
  function sendGrowth(growing: GrowingText, subscriptions: Iterable<StreamSubscription>) {
    const { messageId, sequence, length, text } = growing
    if (!maySend()) return
    const groups = new Map<SubscriptionSink, Map<number, StreamSubscription[]>>()
    for (const subscription of subscriptions) {
      const { mode, isHeld, position, sink, sentTexts } = subscription
      const sent = sentTexts?.get(messageId)?.length ?? 0
      if (mode !== 'live' || isHeld || position < sequence || sent >= length) continue
      const bySent = groups.get(sink) ?? new Map<number, StreamSubscription[]>()
      groups.set(sink, bySent.set(sent, [...(bySent.get(sent) ?? []), subscription]))
    }
    const at = new Date(now())
    for (const [sink, bySent] of groups)
      for (const readers of bySent.values()) {
        const encoded = encodeGrowth(growing, readers[0]!.sentTexts?.get(messageId), at)
        for (const reader of readers)
          reader.sentTexts = new Map(reader.sentTexts).set(messageId, { messageId, length, chars: text.length })
        sink.event(
          readers.map(({ id }) => id),
          encoded,
        )
      }
  }

  /**
   * Whether the position belongs to a log that the session may not read: its conversation is another
   * one since an identification, or was erased. A position of the session's own log of before a
   * restore does not.
   */
  async function isOfOtherLog(ownEpoch: string, { lastEventId = '' }: StartPoint) {
    const epoch = parseEventId(lastEventId)?.epoch
    if (epoch === undefined || storedEpochOf(epoch) === storedEpochOf(ownEpoch)) return false
    return isKnownEpoch(storedEpochOf(epoch))
  }

  bus.on('appended', (event) => feeds.advanced(event.conversationId, event.sequence, event))
  bus.on('advanced', (conversationId, { sequence }, event) => feeds.advanced(conversationId, sequence, event))
  bus.on('growing', (texts) => {
    for (const growing of texts) sendGrowth(growing, feeds.membersOf(growing.conversationId))
  })
  bus.on('current', sessionStreams.releaseAll)
  bus.on('gap', () => {
    feeds.check().catch((error: Error) => logger.warn({ reason: error.name }, 'check of event logs failed; will retry'))
  })

  return {
    ...sessionStreams,
    /** Starts a subscription for an authorized session. Errors: those of the store. */
    async open({
      id,
      sink,
      session,
      epoch,
      start,
      toldAvailability,
    }: {
      id: number
      sink: SubscriptionSink
      session: StreamSession
      epoch: string
      start: StartPoint
      /** The availability that the reader receives with `opened`, as JSON. */
      toldAvailability?: string
    }) {
      const subscription: StreamSubscription = {
        id,
        sink,
        session,
        epoch,
        toldAvailability,
        feed: undefined as never,
        position: 0,
        mode: 'replaying',
        replayed: 0,
        pageSize: replayPage,
        isOpen: false,
        isHeld: false,
      }
      const feed = await feeds.join(session.conversationId, subscription)
      subscription.feed = feed
      sessionStreams.add(subscription)
      metrics.subscriptionsOpen.inc()
      try {
        for (const observer of observers) observer.opened(subscription)
        const { through } = feed
        const decision = await replayWindow.resolveStart(session.conversationId, { epoch, head: through, start })
        if (decision.state === 'ready') {
          subscription.position = decision.sequence
          sink.opened(id, session, { epoch, sequence: decision.sequence })
          subscription.isOpen = true
          subscription.ending?.(subscription)
          void replay(subscription, decision.page && { page: decision.page, through, limit: firstPage })
        } else {
          metrics.streamResets.inc({ reason: decision.reason })
          const isOfOther = decision.reason === 'epoch_changed' && (await isOfOtherLog(epoch, start))
          sink.opened(id, session, { epoch, sequence: feed.through })
          sink.event([id], resetRequired(epoch, feed.through, decision, isOfOther))
          end(subscription)
        }
      } catch (error) {
        close(subscription)
        throw error
      }
      return subscription
    },

    resume(subscription: StreamSubscription) {
      if (subscription.mode !== 'paused') return
      subscription.mode = 'replaying'
      void replay(subscription)
    },

    close: (subscription: StreamSubscription): void => void close(subscription),
    /** Registers an observer of each subscription that opens or ends from now on. */
    observe: (observer: SubscriptionObserver): void => void observers.push(observer),
    /**
     * Compares one part of the followed logs with their ends in the store. `checkSteps` consecutive
     * calls compare all of them.
     */
    checkSome: feeds.checkSome,
  }
}

export type StreamSubscriptions = ReturnType<typeof createStreamSubscriptions>
