import type { Feeds } from './feeds.ts'
import type { LogEvent, SessionEndType } from './model.ts'
import type { Subscription } from './subscriptions.ts'

/** Holds and ends all streams of a session on this core. */
export interface SessionStreams {
  /** Sends nothing on the streams of a session until `release`, or their end. */
  hold(sessionId: string): void
  /** Lets the streams of a session go on. They replay from the log what they missed. */
  release(sessionId: string): void
  /**
   * Ends the streams of a session that is over. `event` is its end in the log; left out when the log does not bring it.
   * `session.closed` comes in its place in the log, since the visitor may go on there in another session. Any other end
   * comes next, without what was written before it meanwhile.
   */
  sessionIsOver(sessionId: string, type: SessionEndType, event?: LogEvent): void
  /** Ends the streams of a session without an event. */
  sessionRefused(sessionId: string, error: unknown): void
}

export interface SessionStreamIndex extends SessionStreams {
  add(subscription: Subscription): void
  remove(subscription: Subscription): void
}

type Ending = (subscription: Subscription) => void

export function createSessionStreams(dependencies: {
  feeds: Pick<Feeds<Subscription>, 'advanced'>
  /** Reads on in the log from where the stream is. */
  replay: (subscription: Subscription) => void
  sendNow: (subscription: Subscription, event: LogEvent) => void
  end: (subscription: Subscription, error?: unknown) => void
  now: () => number
}): SessionStreamIndex {
  const { feeds, replay, sendNow, end, now } = dependencies
  const bySession = new Map<string, Set<Subscription>>()

  const ofSession = (sessionId: string) => [...(bySession.get(sessionId) ?? [])]

  /** Ends a stream now, or as soon as it is open. */
  function endBy(subscription: Subscription, ending: Ending) {
    if (subscription.isOpen) ending(subscription)
    else subscription.ending = ending
  }

  function goOn(subscription: Subscription) {
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
      for (const subscription of ofSession(sessionId)) goOn(subscription)
    },

    sessionIsOver(sessionId, type, event) {
      if (event) feeds.advanced(event.conversationId, event.sequence)
      for (const subscription of ofSession(sessionId))
        endBy(subscription, () => {
          if (type === 'session.closed' && event && subscription.position < event.sequence) return goOn(subscription)
          const { conversationId, through: sequence } = subscription.feed
          sendNow(subscription, event ?? { conversationId, sequence, type, occurredAt: new Date(now()) })
          end(subscription)
        })
    },

    sessionRefused(sessionId, error) {
      for (const subscription of ofSession(sessionId)) endBy(subscription, () => end(subscription, error))
    },
  }
}
