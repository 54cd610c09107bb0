import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import type { Session } from '../visitors/session-store.ts'
import type { EventStore } from './event-store.ts'
import { createFeeds, type Feed } from './feeds.ts'
import { endsSession, type LogEvent } from './model.ts'
import { type ReplayWindow, replayPage, type StartPoint } from './replay-window.ts'
import { createSessionStreams, type SessionStreams } from './session-streams.ts'
import { concerns, type EncodedEvent, encodeFor, resetRequired } from './stream-events.ts'

/** Where the frames of one gateway's subscriptions go. */
export interface SubscriptionSink {
  opened(subscriptionId: number, session: Session, position: { epoch: string; sequence: number }): void
  event(subscriptionIds: number[], event: EncodedEvent): void
  /** The log went on with what is not for these. */
  advanced(subscriptionIds: number[], sequence: number): void
  /** The replay goes on when it is told to. */
  paused(subscriptionId: number): void
  closed(subscriptionId: number, error?: unknown): void
}

export interface Subscription {
  readonly id: number
  readonly sink: SubscriptionSink
  readonly session: Session
  readonly epoch: string
  feed: Feed<Subscription>
  /** Everything up to here that is for it has been sent. */
  position: number
  /** `live` follows the feed; `replaying` reads the log by itself until it has caught up. */
  mode: 'replaying' | 'paused' | 'live' | 'ended'
  /** Events that it was sent before it was live. */
  replayed: number
  isOpen: boolean
  /** Nothing is sent until it is known whether its session is still live. */
  isHeld: boolean
  /** How it ends as soon as it is open: what was decided about its session meanwhile. */
  ending?: (subscription: Subscription) => void
}

/** Characters after which a replay waits for the reader. */
const replayBytes = 64 * 1024

/** Events after a position, and how far the feed had come before they were read: a hole up to there is one. */
interface ReadPage {
  page: LogEvent[]
  through: number
}

export interface Subscriptions extends SessionStreams {
  /** Starts a subscription of an authorised session. Errors: those of the store. */
  open(request: {
    id: number
    sink: SubscriptionSink
    session: Session
    epoch: string
    start: StartPoint
  }): Promise<Subscription>
  /** The reader has room again. */
  resume(subscription: Subscription): void
  close(subscription: Subscription): void
  /** Calls the observer for each subscription from now on. */
  observe(observer: SubscriptionObserver): void
  /** Compares the next part of the followed logs with their ends; all of them within `checkSteps` calls. */
  checkSome(): Promise<void>
}

export interface SubscriptionObserver {
  opened(subscription: Subscription): void
  /** However it ended. */
  ended(subscription: Subscription): void
}

export interface SubscriptionsDependencies {
  events: Pick<EventStore, 'ends' | 'readManyAfter'>
  bus: Bus
  replayWindow: ReplayWindow
  metrics?: CoreMetrics
  logger: Logger
  now?: () => number
  checkSteps?: number
}

/** Streams of events: replay from the log, then live, without a hole or a double between the two (contract, section 4). */
export function createSubscriptions({
  events,
  bus,
  replayWindow,
  metrics = createCoreMetrics(),
  logger,
  now = Date.now,
  checkSteps,
}: SubscriptionsDependencies): Subscriptions {
  const feeds = createFeeds<Subscription>({ events, deliver, metrics, logger, checkSteps })
  const ofSessions = createSessionStreams({
    feeds,
    replay: (subscription) => void replay(subscription),
    sendNow: (subscription, event) => subscription.sink.event([subscription.id], encode(event, subscription.epoch)),
    end,
    now,
  })
  const observers: SubscriptionObserver[] = []
  /** The latest event of each feed in its encoded form, since many may read it. */
  let lastEncoded: { event: LogEvent; encoded: EncodedEvent } | undefined

  function encode(event: LogEvent, epoch: string): EncodedEvent {
    if (lastEncoded?.event !== event) {
      lastEncoded = { event, encoded: encodeFor(event, epoch) }
    }
    return lastEncoded.encoded
  }

  function close(subscription: Subscription): boolean {
    if (subscription.mode === 'ended') return false
    subscription.mode = 'ended'
    feeds.leave(subscription.feed, subscription)
    ofSessions.remove(subscription)
    metrics.subscriptionsOpen.dec()
    for (const observer of observers) observer.ended(subscription)
    return true
  }

  function end(subscription: Subscription, error?: unknown) {
    if (close(subscription)) subscription.sink.closed(subscription.id, error)
  }

  async function replay(subscription: Subscription, known?: ReadPage) {
    try {
      for (let bytes = 0, next = known; subscription.mode === 'replaying'; next = undefined) {
        const { feed, sink } = subscription
        if (subscription.position >= feed.through) {
          subscription.mode = 'live'
          metrics.replaySize.observe(subscription.replayed)
          subscription.replayed = 0
          return
        }
        const { page, through } = next ?? (await read(subscription))
        if (subscription.mode !== 'replaying') return
        if (subscription.isHeld) {
          subscription.mode = 'live'
          return
        }
        for (const event of page) {
          bytes += send(subscription, event)
          if (endsSession(event.type) && concerns(event, subscription.session)) return end(subscription)
          if (bytes >= replayBytes) break
        }
        if (bytes >= replayBytes) {
          subscription.mode = 'paused'
          sink.paused(subscription.id)
          return
        }
        if (page.length < replayPage && subscription.position < through) {
          subscription.position = through
          sink.advanced([subscription.id], through)
        }
      }
    } catch (error) {
      end(subscription, error)
    }
  }

  async function read({ feed, position }: Subscription): Promise<ReadPage> {
    const { through } = feed
    return { page: await replayWindow.read(feed.conversationId, position), through }
  }

  /** Sends one event of a replay if it is for the reader; its length. */
  function send(subscription: Subscription, event: LogEvent): number {
    subscription.position = event.sequence
    if (!concerns(event, subscription.session)) {
      subscription.sink.advanced([subscription.id], event.sequence)
      return 0
    }
    const encoded = encode(event, subscription.epoch)
    subscription.replayed += 1
    subscription.sink.event([subscription.id], encoded)
    return encoded.json.length
  }

  function deliver(feed: Feed<Subscription>, event: LogEvent) {
    const readers = new Map<SubscriptionSink, { heard: number[]; passed: number[] }>()
    const ended: Subscription[] = []
    let epoch = ''
    for (const subscription of feed.members) {
      // A position may be ahead of the feed for a moment, when it was given out by another process.
      if (subscription.mode !== 'live' || subscription.isHeld || event.sequence <= subscription.position) continue
      subscription.position = event.sequence
      epoch = subscription.epoch
      let group = readers.get(subscription.sink)
      if (!group) {
        group = { heard: [], passed: [] }
        readers.set(subscription.sink, group)
      }
      if (!concerns(event, subscription.session)) group.passed.push(subscription.id)
      else {
        group.heard.push(subscription.id)
        if (endsSession(event.type)) ended.push(subscription)
      }
    }
    for (const [sink, { heard, passed }] of readers) {
      if (heard.length > 0) sink.event(heard, encode(event, epoch))
      if (passed.length > 0) sink.advanced(passed, event.sequence)
    }
    for (const subscription of ended) end(subscription)
  }

  bus.on('appended', feeds.appended)
  bus.on('advanced', (conversationId, { sequence }) => feeds.advanced(conversationId, sequence))
  bus.on('gap', () => {
    feeds.check().catch((error: Error) => logger.warn({ reason: error.name }, 'check for missed events failed'))
  })

  return {
    ...ofSessions,

    async open({ id, sink, session, epoch, start }) {
      const subscription: Subscription = {
        id,
        sink,
        session,
        epoch,
        feed: undefined as never,
        position: 0,
        mode: 'replaying',
        replayed: 0,
        isOpen: false,
        isHeld: false,
      }
      const feed = await feeds.join(session.conversationId, subscription)
      subscription.feed = feed
      ofSessions.add(subscription)
      metrics.subscriptionsOpen.inc()
      try {
        for (const observer of observers) observer.opened(subscription)
        const { through } = feed
        const verdict = await replayWindow.judge(session.conversationId, { epoch, head: through, start })
        if (verdict.state === 'ready') {
          subscription.position = verdict.sequence
          sink.opened(id, session, { epoch, sequence: verdict.sequence })
          subscription.isOpen = true
          subscription.ending?.(subscription)
          void replay(subscription, verdict.page && { page: verdict.page, through })
        } else {
          metrics.streamResets.inc({ reason: verdict.reason })
          sink.opened(id, session, { epoch, sequence: feed.through })
          sink.event([id], resetRequired(epoch, feed.through, verdict))
          end(subscription)
        }
      } catch (error) {
        close(subscription)
        throw error
      }
      return subscription
    },

    resume(subscription) {
      if (subscription.mode !== 'paused') return
      subscription.mode = 'replaying'
      void replay(subscription)
    },

    close: (subscription) => void close(subscription),

    observe: (observer) => void observers.push(observer),

    checkSome: feeds.checkSome,
  }
}
