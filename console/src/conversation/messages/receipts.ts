import type { Signal } from '@preact/signals'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../../api.ts'
import { lastBefore, withState } from './message-merge.ts'

interface ReceiptsDeps {
  messaging: Pick<Api['messaging'], 'updateMessageState'>
  conversationId: string
  messages: Signal<readonly Message[]>
}

/**
 * Marks the visitor's messages as `delivered` when they are loaded, and as `read` when the operator
 * sees them.
 */
export function createReceipts({ messaging, conversationId, messages }: ReceiptsDeps) {
  let visible = false
  let sending = false
  let stopped = false

  async function send() {
    if (sending || stopped) return
    sending = true
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
      // A failed call is retried with the next message, visibility change or reconnection.
    } finally {
      sending = false
    }
  }

  return {
    /** Reports the visitor's messages as `read` if the operator sees them, else as `delivered`. */
    send,
    /** Sets whether the operator sees the messages. */
    setVisible(now: boolean) {
      visible = now
      if (visible) void send()
    },
    stop() {
      stopped = true
    },
  }
}
