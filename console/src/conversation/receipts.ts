import type { Signal } from '@preact/signals'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import { lastBefore, withState } from './message-merge.ts'

export interface Receipts {
  /** Sends the current state of the visitor's messages. */
  send(): Promise<void>
  /** Sets whether the operator sees the messages. */
  setVisible(visible: boolean): void
  stop(): void
}

/** Marks the visitor's messages as `delivered` when loaded and as `read` when visible. */
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
      // Retried with the next message, change of visibility or reconnection.
    } finally {
      sending = false
    }
  }

  return {
    send,
    setVisible(now) {
      visible = now
      if (visible) void send()
    },
    stop() {
      stopped = true
    },
  }
}
