import type { LogEvent, SessionEndType } from '../log-event.ts'
import type { Feed, Feeds } from './feeds.ts'
import type { EncodedEvent, SentText, StreamEvent, StreamSession } from './model.ts'

type Ending = (subscription: StreamSubscription) => void

/** Pauses and ends all streams of a session on this core. */
export function createSessionStreams(dependencies: {
  feeds: Pick<Feeds<StreamSubscription>, 'advanced'>
  replay: (subscription: StreamSubscription) => void
  sendNow: (subscription: StreamSubscription, event: LogEvent) => void
  end: (subscription: StreamSubscription, error?: unknown) => void
  now: () => number
}) {
  const { feeds, replay, sendNow, end, now } = dependencies

  const bySession = new Map<string, Set<StreamSubscription>>()

  const ofSession = (sessionId: string) => [...(bySession.get(sessionId) ?? [])]

  /** Ends a subscription now, or as soon as it is open. */
  function endWhenOpen(subscription: StreamSubscription, ending: Ending) {
    if (subscription.isOpen) ending(subscription)
    else subscription.ending = ending
  }

  function unhold(subscription: StreamSubscription) {
    subscription.isHeld = false
    continueStream(subscription)
  }

  function continueStream(subscription: StreamSubscription) {
    const { isOpen, isHeld, mode, position, feed } = subscription
    if (!isOpen || isHeld || mode !== 'live' || position >= feed.through) return
    subscription.mode = 'replaying'
    replay(subscription)
  }

  return {
    add(subscription: StreamSubscription) {
      const { sessionId } = subscription.session
      const streams = bySession.get(sessionId) ?? new Set()
      bySession.set(sessionId, streams.add(subscription))
    },

    remove(subscription: StreamSubscription) {
      const { sessionId } = subscription.session
      const streams = bySession.get(sessionId)
      streams?.delete(subscription)
      if (streams?.size === 0) bySession.delete(sessionId)
    },

    /** Stops sending on the streams of a session until `release` is called or the streams end. */
    hold(sessionId: string) {
      for (const subscription of ofSession(sessionId)) subscription.isHeld = true
    },

    /** Resumes sending on the streams of a session. The streams replay the events that they missed. */
    release(sessionId: string) {
      for (const subscription of ofSession(sessionId)) unhold(subscription)
    },

    /** Resumes sending on all streams that are not held. */
    releaseAll() {
      for (const streams of bySession.values()) for (const subscription of [...streams]) continueStream(subscription)
    },

    /**
     * Ends the streams of a session that ended. `event` is the end event, if the log has one.
     * `session.closed` is sent in its order in the log, because the visitor may continue in another
     * session. An end event of another type is sent at once, and the events before it are skipped.
     */
    endSession(sessionId: string, type: SessionEndType, event?: LogEvent) {
      if (event) feeds.advanced(event.conversationId, event.sequence)
      for (const subscription of ofSession(sessionId))
        endWhenOpen(subscription, () => {
          if (type === 'session.closed' && event && subscription.position < event.sequence) return unhold(subscription)
          const { conversationId, through: sequence } = subscription.feed
          sendNow(subscription, event ?? { conversationId, sequence, type, occurredAt: new Date(now()) })
          end(subscription)
        })
    },

    /** Ends the streams of a session with an error, without an end event. */
    refuseSession(sessionId: string, error: unknown) {
      for (const subscription of ofSession(sessionId)) endWhenOpen(subscription, () => end(subscription, error))
    },
  }
}

/** Remembers how much of a growing message an event sends. */
export function noteText(subscription: StreamSubscription, { growing }: StreamEvent) {
  if (growing) subscription.sentTexts = new Map(subscription.sentTexts).set(growing.messageId, growing)
}

/** Receives the events and the states of all subscriptions of one gateway. */
export interface SubscriptionSink {
  opened(subscriptionId: number, session: StreamSession, position: { epoch: string; sequence: number }): void
  event(subscriptionIds: number[], event: EncodedEvent): void
  replayed(subscriptionId: number, events: EncodedEvent[]): void
  /** Reports the new end of the log to subscriptions that receive no event for it. */
  advanced(subscriptionIds: number[], sequence: number): void
  /**
   * Reports that an installation became online or away. `data` is JSON. The event is not in the log.
   */
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
  isOpen: boolean
  /** The availability that was last sent to the reader, as JSON. */
  toldAvailability?: string | undefined
  /** How much was sent of messages that grow, by their ids. */
  sentTexts?: Map<string, SentText>
  /** True while nothing may be sent, because the state of the session is not known yet. */
  isHeld: boolean
  /**
   * Set when the session ended before the subscription was open. Called to end the subscription
   * once it is open.
   */
  ending?: (subscription: StreamSubscription) => void
}
