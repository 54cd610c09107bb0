import { createJobs } from '../concurrency/job.ts'
import { type Core, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { storedEpochOf } from '../ids.ts'
import { type EventStore, eventsOf } from '../log/event-store.ts'
import { logHeadsOf } from '../log/log-heads.ts'
import { endsSession, type GrowingText, type LogEvent, type SessionEndType } from '../log-event.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { createFeeds, type Feed } from './feeds.ts'
import { growingTextsOf } from './growing-texts.ts'
import {
  type EncodedEvent,
  encodeFor,
  encodeGrowth,
  isSentTo,
  resetRequired,
  type SentText,
  type StreamEvent,
  type StreamSession,
  toStreamEvent,
} from './model.ts'
import { recentEventsOf } from './recent-events.ts'
import { firstPage, parseEventId, replayPage, replayWindowOf, type StartPoint } from './replay-window.ts'

/** Receives the events and the states of all subscriptions of one gateway. */
export interface SubscriptionSink {
  opened(subscriptionId: number, session: StreamSession, position: { epoch: string; sequence: number }): void
  event(subscriptionIds: number[], event: EncodedEvent): void
  replayed(subscriptionId: number, events: EncodedEvent[]): void
  /** Reports the new end of the log to subscriptions that receive no event for it. */
  advanced(subscriptionIds: number[], sequence: number): void
  /** Reports that an installation became online or away. `data` is JSON. The event is not in the log. */
  availability(subscriptionIds: number[], change: { occurredAt: Date; data: string }): void
  /** Reports that the replay of the subscription waits for `resume`. */
  paused(subscriptionId: number): void
  closed(subscriptionId: number, error?: unknown): void
}

export interface StreamSubscription {
  readonly id: number
  readonly sink: SubscriptionSink
  readonly session: StreamSession
  readonly epoch: string
  feed: Feed<StreamSubscription>
  /** Every event up to this sequence was sent or deliberately skipped. */
  position: number
  /**
   * A `live` subscription receives events from the feed. A `replaying` one reads the log until it
   * has caught up. A `paused` one waits for `resume`.
   */
  mode: 'replaying' | 'paused' | 'live' | 'ended'
  /** Number of events sent since the current replay began. */
  replayed: number
  /** Maximum number of events in the next read of a replay. */
  pageSize: number
  /** Whether it has caught up once. What it misses from then on includes typing. */
  wasLive?: boolean
  isOpen: boolean
  /** The availability that was last sent to the reader, as JSON. */
  toldAvailability?: string
  /** How much was sent of messages that grow, by their ids. */
  sentTexts?: Map<string, SentText>
  /** True while nothing may be sent, because the state of the session is not known yet. */
  isHeld: boolean
  /** Ends the subscription once it is open. Set when the session ended before. */
  ending?: () => void
}

interface SubscriptionObserver {
  opened(subscription: StreamSubscription): void
  /** Called once for each subscription, however it ended. */
  ended(subscription: StreamSubscription): void
}

/**
 * Events after a position. If the page is not full, it has every event up to `through`. After a
 * full page, the log may have more.
 */
interface ReadPage {
  page: StreamEvent[]
  through: number
  limit: number
}

/**
 * Each core periodically compares the ends of its followed logs with the database. Each run checks
 * a fraction of the logs. So a lost wake-up delays an event by at most `checkEveryMs * checkSteps`.
 * No event is lost.
 */
const checkEveryMs = 250
const checkSteps = 12

const dropOldEveryMs = 60_000

/** Number of characters after which a replay pauses until the reader continues it. */
const maxReplayChars = 64 * 1024

export const streamJobs = (core: Core) =>
  createJobs(core, {
    'check for missed events': [checkEveryMs, streamSubscriptionsOf(core).checkSome],
    'drop of old events': [dropOldEveryMs, async () => recentEventsOf(core).dropOld()],
  })

/** Whether this is the stored epoch of an existing log, or of one that an erasure has removed. */
async function isKnownEpoch({ db }: Core, epoch: string) {
  const idOnly = { projection: { _id: 1 } } as const
  const found = [db.conversations.findOne({ epoch }, idOnly), db.erasures.findOne({ epochs: epoch }, idOnly)]
  return (await Promise.all(found)).some((each) => each !== null)
}

/**
 * Sends events to subscribers: first a replay from the log, then live events. Each event is sent
 * once to a subscriber (contract, section 4). While `maySend` returns false, nothing is sent until the
 * bus event `current`.
 */
export const streamSubscriptionsOf = perCore((core) => {
  const { bus, metrics, logger, now } = core
  const stored = eventsOf(core)
  const heads = logHeadsOf(core)
  // The memory of recent events must subscribe to the bus before the streams, so that a new event is in memory
  // before a stream replays it.
  const replayWindow = replayWindowOf(core)
  const growingTexts = growingTextsOf(core)
  const { maySend } = wakeupsOf(core)
  // An end that was read for streams is cached for the writer too, so that an append needs no read.
  const ends: EventStore['ends'] = (ids, options) => heads.learn(ids, (each) => stored.ends(each, options))
  const events = { ...stored, ends }
  const feeds = createFeeds(core, events, deliver, checkSteps)
  const bySession = new Map<string, Set<StreamSubscription>>()
  const observers: SubscriptionObserver[] = []

  const ofSession = (sessionId: string) => [...(bySession.get(sessionId) ?? [])]

  function close(subscription: StreamSubscription) {
    if (subscription.mode === 'ended') return false
    subscription.mode = 'ended'
    feeds.leave(subscription.feed, subscription)
    const { sessionId } = subscription.session
    const streams = bySession.get(sessionId)
    streams?.delete(subscription)
    if (streams?.size === 0) bySession.delete(sessionId)
    metrics.subscriptionsOpen.dec()
    for (const observer of observers) observer.ended(subscription)
    return true
  }

  function end(subscription: StreamSubscription, error?: unknown) {
    if (close(subscription)) subscription.sink.closed(subscription.id, error)
  }

  function endWhenOpen(subscription: StreamSubscription, ending: () => void) {
    if (subscription.isOpen) ending()
    else subscription.ending = ending
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
      const group = readers.get(subscription.sink) ?? { receiving: [], skipping: [] }
      readers.set(subscription.sink, group)
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
        const ids = readers.map(({ id }) => id)
        sink.event(ids, encoded)
      }
  }

  function sendTexts(subscription: StreamSubscription) {
    for (const growing of growingTexts.in(subscription.feed.conversationId)) sendGrowth(growing, [subscription])
  }

  /**
   * Sends a subscription the events that it missed, until it is live, paused or ended. `known` is the
   * first page, if it was already read. Never rejects.
   */
  async function replay(subscription: StreamSubscription, known?: ReadPage) {
    const { feed, sink, id } = subscription
    try {
      for (let chars = 0, next = known; subscription.mode === 'replaying'; next = undefined) {
        if (subscription.position >= feed.through) {
          subscription.mode = 'live'
          subscription.wasLive = true
          metrics.replaySize.observe(subscription.replayed)
          subscription.replayed = 0
          return sendTexts(subscription)
        }
        const { page, through, limit } = next ?? (await readPage(subscription))
        if (subscription.mode !== 'replaying') return
        if (subscription.isHeld || !maySend()) {
          subscription.mode = 'live'
          return
        }
        const sent = sendPage(subscription, page, maxReplayChars - chars)
        if (sent.hasEnded) return end(subscription)
        chars += sent.chars
        // After large events, a read has no more of them than are sent before the next pause.
        if (sent.events > 0)
          subscription.pageSize = Math.min(replayPage, Math.ceil((maxReplayChars * sent.events) / sent.chars))
        if (chars >= maxReplayChars) {
          subscription.mode = 'paused'
          sink.paused(id)
          return
        }
        if (page.length < limit && subscription.position < through) {
          subscription.position = through
          sink.advanced([id], through)
        }
      }
    } catch (error) {
      end(subscription, error)
    }
  }

  async function readPage({ feed, position, pageSize: limit, wasLive }: StreamSubscription): Promise<ReadPage> {
    const { through } = feed
    return { page: await replayWindow.read(feed.conversationId, position, through, limit, wasLive), through, limit }
  }

  /** Sends events until `maxChars` were sent. Skips events that the session must not receive. */
  function sendPage(subscription: StreamSubscription, page: StreamEvent[], maxChars: number) {
    const { id, sink, session, epoch } = subscription
    const sending: EncodedEvent[] = []
    let chars = 0
    let ending: EncodedEvent | undefined
    for (const event of page) {
      subscription.position = event.sequence
      if (!isSentTo(event, session)) continue
      noteText(subscription, event)
      const encoded = encodeFor(event, epoch)
      chars += encoded.json.length
      if (endsSession(event.type)) {
        ending = encoded
        break
      }
      sending.push(encoded)
      if (chars >= maxChars) break
    }
    subscription.replayed += sending.length
    if (sending.length > 0) sink.replayed(id, sending)
    if (ending) sink.event([id], ending)
    else if ((sending.at(-1)?.sequence ?? 0) < subscription.position) sink.advanced([id], subscription.position)
    return { chars, events: sending.length, hasEnded: ending !== undefined }
  }

  /** Sends what a stream missed while nothing could be sent. */
  function continueStream(subscription: StreamSubscription) {
    const { isOpen, isHeld, mode, position, feed } = subscription
    if (!isOpen || isHeld || mode !== 'live') return
    if (position >= feed.through) return sendTexts(subscription)
    subscription.mode = 'replaying'
    void replay(subscription)
  }

  function unhold(subscription: StreamSubscription) {
    subscription.isHeld = false
    continueStream(subscription)
  }

  /**
   * Whether the position belongs to a log that the session may not read: its conversation is another
   * one since an identification, or was erased. A position of the session's own log of before a
   * restore does not.
   */
  async function isOfOtherLog(ownEpoch: string, { lastEventId = '' }: StartPoint) {
    const epoch = parseEventId(lastEventId)?.epoch
    if (epoch === undefined || storedEpochOf(epoch) === storedEpochOf(ownEpoch)) return false
    return isKnownEpoch(core, storedEpochOf(epoch))
  }

  bus.on('appended', (event) => feeds.advanced(event.conversationId, event.sequence, event))
  bus.on('advanced', (conversationId, { sequence }, event) => feeds.advanced(conversationId, sequence, event))
  bus.on('growing', (texts) => {
    for (const growing of texts) sendGrowth(growing, feeds.membersOf(growing.conversationId))
  })
  bus.on('current', () => {
    for (const streams of bySession.values()) for (const subscription of [...streams]) continueStream(subscription)
  })
  bus.on('gap', () => {
    feeds.check().catch(logFailure(logger, 'check of event logs failed; will retry'))
  })

  return {
    /**
     * Starts a subscription for an authorized session. `toldAvailability` is the availability that the
     * reader receives with `opened`, as JSON. Errors: those of the store.
     */
    async open({
      start,
      ...given
    }: Pick<StreamSubscription, 'id' | 'sink' | 'session' | 'epoch' | 'toldAvailability'> & { start: StartPoint }) {
      const { id, sink, session, epoch } = given
      const { sessionId, conversationId } = session
      const subscription: StreamSubscription = {
        ...given,
        feed: undefined as never,
        position: 0,
        mode: 'replaying',
        replayed: 0,
        pageSize: replayPage,
        isOpen: false,
        isHeld: false,
      }
      const feed = await feeds.join(conversationId, subscription)
      subscription.feed = feed
      bySession.set(sessionId, (bySession.get(sessionId) ?? new Set()).add(subscription))
      metrics.subscriptionsOpen.inc()
      try {
        for (const observer of observers) observer.opened(subscription)
        const { through } = feed
        const decision = await replayWindow.resolveStart(conversationId, { epoch, head: through, start })
        if (decision.state === 'ready') {
          subscription.position = decision.sequence
          sink.opened(id, session, { epoch, sequence: decision.sequence })
          subscription.isOpen = true
          subscription.ending?.()
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
    /** Stops sending on the streams of a session until `release` is called or the streams end. */
    hold(sessionId: string) {
      for (const subscription of ofSession(sessionId)) subscription.isHeld = true
    },

    /** Resumes sending on the streams of a session. The streams replay the events that they missed. */
    release: (sessionId: string): void => ofSession(sessionId).forEach(unhold),
    /**
     * Ends the streams of a session that ended. `event` is the end event, if the log has one.
     * `session.closed` is sent in its order in the log, because the visitor may continue in another
     * session. An end event of another type is sent at once, and the events before it are skipped.
     */
    endSession(sessionId: string, type: SessionEndType, event?: LogEvent) {
      if (event) feeds.advanced(event.conversationId, event.sequence)
      for (const subscription of ofSession(sessionId))
        endWhenOpen(subscription, () => {
          const { id, sink, feed, epoch, position } = subscription
          if (type === 'session.closed' && event && position < event.sequence) return unhold(subscription)
          const { conversationId, through: sequence } = feed
          const last = event ?? { conversationId, sequence, type, occurredAt: new Date(now()) }
          sink.event([id], encodeFor(toStreamEvent(last), epoch))
          end(subscription)
        })
    },

    /** Ends the streams of a session with an error, without an end event. */
    refuseSession(sessionId: string, error: unknown) {
      for (const subscription of ofSession(sessionId)) endWhenOpen(subscription, () => end(subscription, error))
    },

    /** Registers an observer of each subscription that opens or ends from now on. */
    observe: (observer: SubscriptionObserver): void => void observers.push(observer),
    /** Checks one part of the followed logs. `checkSteps` consecutive calls check all of them. */
    checkSome: feeds.checkSome,
  }
})

function noteText(subscription: StreamSubscription, { growing }: StreamEvent) {
  if (growing) subscription.sentTexts = new Map(subscription.sentTexts).set(growing.messageId, growing)
}
