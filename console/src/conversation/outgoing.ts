import { type ReadonlySignal, signal } from '@preact/signals'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import { newOperationId } from '../operations.ts'
import type { Drafts, Unsent } from './drafts.ts'

/** A reply of the operator that the conversation does not contain yet. */
export interface OutgoingMessage extends Unsent {
  state: 'sending' | 'failed'
  failure?: Failure
}

const sendTimeoutMs = 15_000

interface OutgoingDeps {
  messaging: Pick<Api['messaging'], 'sendAgentMessage'>
  drafts: Drafts
  conversationId: string
  agentName: () => string
  onSent: (message: Message) => void
}

/** Sends replies. Each reply keeps its operation ID until it is confirmed or discarded. */
export function createOutgoing({ messaging, drafts, conversationId, agentName, onSent }: OutgoingDeps) {
  const list = signal<readonly OutgoingMessage[]>(
    // Unconfirmed replies of an earlier page start as failed, because their outcome is unknown.
    drafts.unsent(conversationId).map((unsent) => ({ ...unsent, state: 'failed' })),
  )

  function set(messages: readonly OutgoingMessage[]) {
    list.value = messages
    drafts.keepUnsent(
      conversationId,
      messages.map(({ operationId, body, agentName: name }) => ({ operationId, body, agentName: name })),
    )
  }

  const remove = (operationId: string) => set(list.value.filter((message) => message.operationId !== operationId))

  /**
   * Replies are sent one at a time, so that they arrive in the order in which they were written.
   */
  let line: Promise<unknown> = Promise.resolve()
  const queue = (message: OutgoingMessage) => (line = line.then(() => transmit(message)))

  async function transmit({ operationId, body, agentName: displayName }: OutgoingMessage) {
    try {
      const { message } = await messaging.sendAgentMessage(
        { conversationId, clientOperationId: operationId, body, agent: { displayName } },
        { timeoutMs: sendTimeoutMs },
      )
      if (message) onSent(message)
      remove(operationId)
    } catch (error) {
      const failure = describeFailure(error)
      set(
        list.value.map((message) =>
          message.operationId === operationId ? { ...message, state: 'failed', failure } : message,
        ),
      )
    }
  }

  return {
    list: list as ReadonlySignal<readonly OutgoingMessage[]>,

    send(body: string) {
      const message: OutgoingMessage = { operationId: newOperationId(), body, agentName: agentName(), state: 'sending' }
      set([...list.value, message])
      void queue(message)
    },

    /**
     * Retries a failed reply with the same operation ID, so that the service stores it only once.
     */
    retry(operationId: string) {
      const message = list.value.find((known) => known.operationId === operationId)
      if (message?.state !== 'failed') return
      const { failure: _, ...rest } = message
      const again: OutgoingMessage = { ...rest, state: 'sending' }
      set(list.value.map((known) => (known === message ? again : known)))
      void queue(again)
    },

    /** Removes a failed reply and returns its text. */
    discard(operationId: string) {
      const body = list.value.find((known) => known.operationId === operationId)?.body ?? ''
      remove(operationId)
      return body
    },

    /** Removes the reply. Call when the conversation contains its message. */
    confirm: remove,
  }
}
