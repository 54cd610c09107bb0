import { endsSession } from '../log-event.ts'
import type { CoreMetrics } from '../metrics.ts'
import { type EncodedEvent, encodeFor, isSentTo, type StreamEvent } from './model.ts'
import { maxReplayChars, pageSizeFor, type ReadPage, type ReplayWindow } from './replay-window.ts'
import { noteText, type StreamSubscription } from './session-streams.ts'

/**
 * Returns a function that sends a subscription the events that it missed, until it is live, paused
 * or ended. `known` is the first page, if it was already read. Never rejects.
 */
export function createReplays({
  replayWindow,
  metrics,
  maySend,
  end,
  onLive,
}: {
  replayWindow: ReplayWindow
  metrics: CoreMetrics
  maySend: () => boolean
  end: (subscription: StreamSubscription, error?: unknown) => void
  /** Called when a subscription has got every event so far. */
  onLive: (subscription: StreamSubscription) => void
}) {
  async function read({ feed, position, pageSize: limit }: StreamSubscription): Promise<ReadPage> {
    const { through } = feed
    return { page: await replayWindow.read(feed.conversationId, position, through, limit), through, limit }
  }

  /**
   * Sends events of a replay until `maxChars` characters were sent. Skips events that the session
   * must not receive. Returns how many characters and events were sent, and whether an event ended
   * the session.
   */
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

  return async function replay(subscription: StreamSubscription, known?: ReadPage) {
    try {
      for (let chars = 0, next = known; subscription.mode === 'replaying'; next = undefined) {
        const { feed, sink } = subscription
        if (subscription.position >= feed.through) {
          subscription.mode = 'live'
          metrics.replaySize.observe(subscription.replayed)
          subscription.replayed = 0
          onLive(subscription)
          return
        }
        const { page, through, limit } = next ?? (await read(subscription))
        if (subscription.mode !== 'replaying') return
        if (subscription.isHeld || !maySend()) {
          subscription.mode = 'live'
          return
        }
        const sent = sendPage(subscription, page, maxReplayChars - chars)
        if (sent.hasEnded) return end(subscription)
        chars += sent.chars
        // After large events, a read has no more of them than are sent before the next pause.
        if (sent.events > 0) subscription.pageSize = pageSizeFor(sent.chars / sent.events)
        if (chars >= maxReplayChars) {
          subscription.mode = 'paused'
          sink.paused(subscription.id)
          return
        }
        if (page.length < limit && subscription.position < through) {
          subscription.position = through
          sink.advanced([subscription.id], through)
        }
      }
    } catch (error) {
      end(subscription, error)
    }
  }
}
