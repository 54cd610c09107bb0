import type { Signal } from '@preact/signals'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import { lastBefore, withState } from './message-merge.ts'

export interface Receipts {
  /** Tells how far the visitor's messages have come by now. */
  send(): Promise<void>
  /** The operator sees the messages, or does not any more. */
  setVisible(visible: boolean): void
  stop(): void
}

/** Keeps the service told of what came to this console (`delivered`), and before the operator's eyes (`read`). */
export function createReceipts({
  messaging,
  conversationId,
  messages,
}: {
  messaging: Pick<Api['messaging'], 'updateMessageState'>
  conversationId: string
  messages: Signal<readonly Message[]>
}): Receipts {
  let visible = false
  let marking = false
  let over = false

  async function send() {
    if (marking || over) return
    marking = true
    try {
      for (let upToSequence = 1; upToSequence > 0; ) {
        const state = visible ? 'read' : 'delivered'
        upToSequence = lastBefore(messages.value, state)
        if (upToSequence === 0) break
        for (let remaining = 1; remaining > 0; ) {
          ;({ remaining } = await messaging.updateMessageState({ conversationId, upToSequence, state }))
        }
        for (const { messageId, sequence, author } of messages.value) {
          if (author?.kind === 'visitor' && sequence <= upToSequence)
            messages.value = withState(messages.value, messageId, state)
        }
      }
    } catch {
      // The next message, look or reconnection tries again.
    } finally {
      marking = false
    }
  }

  return {
    send,
    setVisible(now) {
      visible = now
      if (visible) void send()
    },
    stop() {
      over = true
    },
  }
}
