import type { Feeds } from './feeds.ts'
import type { LogEvent, SessionEndType } from './model.ts'
import type { StreamSubscription } from './stream-subscriptions.ts'

/** Pauses and ends all streams of a session on this core. */
export interface SessionStreams {
  /** Sends nothing on the streams of a session until `release` or their end. */
  hold(sessionId: string): void
  /** Continues the streams of a session. They replay the events that they missed. */
  release(sessionId: string): void
  /**
   * Ends the streams of a session that ended. `event` is the end event in the log, if the log has
   * one. `session.closed` is sent in its order in the log, because the visitor may continue in
   * another session. Any other end is sent at once and skips the events before it.
   */
  endSession(sessionId: string, type: SessionEndType, event?: LogEvent): void
  /** Ends the streams of a session with an error instead of an event. */
  refuseSession(sessionId: string, error: unknown): void
}

export interface SessionStreamIndex extends SessionStreams {
  add(subscription: StreamSubscription): void
  remove(subscription: StreamSubscription): void
}

type Ending = (subscription: StreamSubscription) => void

export function createSessionStreams(dependencies: {
  feeds: Pick<Feeds<StreamSubscription>, 'advanced'>
  /** Replays the log from the position of the stream. */
  replay: (subscription: StreamSubscription) => void
  sendNow: (subscription: StreamSubscription, event: LogEvent) => void
  end: (subscription: StreamSubscription, error?: unknown) => void
  now: () => number
}): SessionStreamIndex {
  const { feeds, replay, sendNow, end, now } = dependencies
  const bySession = new Map<string, Set<StreamSubscription>>()

  const ofSession = (sessionId: string) => [...(bySession.get(sessionId) ?? [])]

  /** Ends a stream now, or as soon as it is open. */
  function endWhenOpen(subscription: StreamSubscription, ending: Ending) {
    if (subscription.isOpen) ending(subscription)
    else subscription.ending = ending
  }

  function continueStream(subscription: StreamSubscription) {
    subscription.isHeld = false
    const { isOpen, mode, position, feed } = subscription
    if (!isOpen || mode !== 'live' || position >= feed.through) return
    subscription.mode = 'replaying'
    replay(subscription)
  }

  return {
    add(subscription) {
      const { sessionId } = subscription.session
      const streams = bySession.get(sessionId) ?? new Set()
      bySession.set(sessionId, streams.add(subscription))
    },

    remove(subscription) {
      const { sessionId } = subscription.session
      const streams = bySession.get(sessionId)
      streams?.delete(subscription)
      if (streams?.size === 0) bySession.delete(sessionId)
    },

    hold(sessionId) {
      for (const subscription of ofSession(sessionId)) subscription.isHeld = true
    },

    release(sessionId) {
      for (const subscription of ofSession(sessionId)) continueStream(subscription)
    },

    endSession(sessionId, type, event) {
      if (event) feeds.advanced(event.conversationId, event.sequence)
      for (const subscription of ofSession(sessionId))
        endWhenOpen(subscription, () => {
          if (type === 'session.closed' && event && subscription.position < event.sequence)
            return continueStream(subscription)
          const { conversationId, through: sequence } = subscription.feed
          sendNow(subscription, event ?? { conversationId, sequence, type, occurredAt: new Date(now()) })
          end(subscription)
        })
    },

    refuseSession(sessionId, error) {
      for (const subscription of ofSession(sessionId)) endWhenOpen(subscription, () => end(subscription, error))
    },
  }
}
