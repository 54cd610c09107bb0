import { type ReadonlySignal, signal } from '@preact/signals'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import { newOperationId } from '../operations.ts'
import type { Drafts, Unsent } from './drafts.ts'

/** An answer that is not in the conversation yet. */
export interface OutgoingMessage extends Unsent {
  state: 'sending' | 'failed'
  failure?: Failure
}

export interface Outgoing {
  list: ReadonlySignal<readonly OutgoingMessage[]>
  send(body: string): void
  /** Sends the same operation again: what did arrive is not sent twice. */
  retry(operationId: string): void
  /** Takes a failed one back, and answers its text. */
  discard(operationId: string): string
  /** The conversation has the operation's message. */
  arrived(operationId: string): void
}

const sendTimeoutMs = 15_000

/** Answers on their way: each is one operation, under one name until it is known to have arrived or is taken back. */
export function createOutgoing({
  messaging,
  drafts,
  conversationId,
  agentName,
  onSent,
}: {
  messaging: Pick<Api['messaging'], 'sendAgentMessage'>
  drafts: Drafts
  conversationId: string
  agentName: () => string
  onSent: (message: Message) => void
}): Outgoing {
  const list = signal<readonly OutgoingMessage[]>(
    // Left over from a page before: whether they arrived is not known.
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

  /** One after the other, so that the visitor reads them in the order in which they were written. */
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
    list,
    send(body) {
      const message: OutgoingMessage = { operationId: newOperationId(), body, agentName: agentName(), state: 'sending' }
      set([...list.value, message])
      void queue(message)
    },
    retry(operationId) {
      const message = list.value.find((known) => known.operationId === operationId)
      if (message?.state !== 'failed') return
      const { failure: _, ...rest } = message
      const again: OutgoingMessage = { ...rest, state: 'sending' }
      set(list.value.map((known) => (known === message ? again : known)))
      void queue(again)
    },
    discard(operationId) {
      const body = list.value.find((known) => known.operationId === operationId)?.body ?? ''
      remove(operationId)
      return body
    },
    arrived: remove,
  }
}
