import { computed, signal } from '@preact/signals'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'
import type { Clock, TimerId } from '../../../../browser/platform.ts'
import type { Api } from '../../api.ts'
import { describeFailure, type Failure } from '../../failures.ts'
import { newOperationId } from '../../operations.ts'
import type { ShownAgent } from '../../session.ts'
import type { Drafts, Unsent } from './drafts.ts'

/** A reply of the operator that the conversation does not contain yet. */
export interface OutgoingMessage extends Unsent {
  /**
   * `waiting`: the outbox will send the reply automatically. `failed`: the service rejected the
   * reply.
   */
  state: 'sending' | 'waiting' | 'failed'
  failure?: Failure
}

export type Outbox = ReturnType<typeof createOutbox>

const sendTimeoutMs = 15_000
const firstPauseMs = 1_000
const longestPauseMs = 15_000

interface OutboxDeps {
  messaging: Pick<Api['messaging'], 'sendAgentMessage'>
  drafts: Drafts
  agent: () => ShownAgent
  clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>
}

/**
 * Sends the operator's replies in all conversations. A reply keeps its operation ID until it is
 * confirmed or discarded, even after a reload. So the service stores the reply only once. A
 * conversation's replies are sent one at a time, in the order in which they were written.
 */
export function createOutbox({ messaging, drafts, agent, clock }: OutboxDeps) {
  const lists = signal<ReadonlyMap<string, readonly OutgoingMessage[]>>(
    new Map(
      drafts
        .conversationsWithUnsent()
        .map((id) => [id, drafts.unsent(id).map((unsent) => ({ ...unsent, state: 'waiting' as const }))]),
    ),
  )
  const sending = new Set<string>()
  const pauses = new Map<string, { end: () => void; timer: TimerId }>()
  const listeners = new Map<string, (message: Message) => void>()
  let stopped = false

  const listOf = (conversationId: string) => lists.value.get(conversationId) ?? []

  function set(conversationId: string, messages: readonly OutgoingMessage[]) {
    // The drafts of an operator who has signed out must not be stored again.
    if (stopped) return
    const next = new Map(lists.value)
    if (messages.length > 0) next.set(conversationId, messages)
    else next.delete(conversationId)
    lists.value = next
    drafts.keepUnsent(
      conversationId,
      messages.map(({ state: _, failure: __, ...unsent }) => unsent),
    )
  }

  function change(conversationId: string, message: OutgoingMessage, state: Partial<OutgoingMessage>) {
    const { failure: _, ...unsent } = message
    const changed = { ...unsent, ...state }
    set(
      conversationId,
      listOf(conversationId).map((known) => (known.operationId === message.operationId ? changed : known)),
    )
  }

  const remove = (conversationId: string, operationId: string) =>
    set(
      conversationId,
      listOf(conversationId).filter((message) => message.operationId !== operationId),
    )

  async function sendAll(conversationId: string) {
    if (sending.has(conversationId)) return
    sending.add(conversationId)
    for (let failures = 0; !stopped; ) {
      const message = listOf(conversationId).find(({ state }) => state !== 'failed')
      if (!message) break
      change(conversationId, message, { state: 'sending' })
      const failure = await transmit(conversationId, message)
      failures = failure ? failures + 1 : 0
      if (!failure) remove(conversationId, message.operationId)
      else if (!isTemporary(failure)) change(conversationId, message, { state: 'failed', failure })
      else {
        change(conversationId, message, { state: 'waiting', failure })
        await pause(conversationId, Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs))
      }
    }
    sending.delete(conversationId)
  }

  async function transmit(conversationId: string, { operationId, body, agentName: displayName, avatarUrl }: Unsent) {
    try {
      const { message } = await messaging.sendAgentMessage(
        { conversationId, clientOperationId: operationId, body, agent: { displayName, avatarUrl } },
        { timeoutMs: sendTimeoutMs },
      )
      if (message) listeners.get(conversationId)?.(message)
      return undefined
    } catch (error) {
      return describeFailure(error)
    }
  }

  function pause(conversationId: string, ms: number): Promise<void> {
    if (stopped) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        pauses.delete(conversationId)
        resolve()
      }
      pauses.set(conversationId, { end, timer: clock.setTimeout(end, ms) })
    })
  }

  function endPauses(conversationIds: Iterable<string>) {
    for (const conversationId of [...conversationIds]) {
      const current = pauses.get(conversationId)
      clock.clearTimeout(current?.timer)
      current?.end()
    }
  }

  return {
    /** Returns the state that the list shows for a conversation; undefined if all replies are sent. */
    markOf(conversationId: string): 'sending' | 'unsent' | undefined {
      const messages = listOf(conversationId)
      if (messages.some(({ state }) => state !== 'sending')) return 'unsent'
      return messages.length > 0 ? 'sending' : undefined
    },

    /** Sends all waiting replies now. Call at the start, and when the service can be reached again. */
    sendNow() {
      endPauses(pauses.keys())
      for (const conversationId of lists.peek().keys()) void sendAll(conversationId)
    },

    stop() {
      stopped = true
      endPauses(pauses.keys())
    },

    /** Returns the replies of one conversation. `onSent` is called with each stored message. */
    open(conversationId: string, onSent: (message: Message) => void) {
      listeners.set(conversationId, onSent)
      return {
        list: computed(() => listOf(conversationId)),

        send(body: string) {
          const { displayName: agentName, avatarUrl } = agent()
          const message = { operationId: newOperationId(), body, agentName, avatarUrl, state: 'waiting' as const }
          set(conversationId, [...listOf(conversationId), message])
          void sendAll(conversationId)
        },

        /** Sends a waiting or rejected reply now, with the same operation ID. */
        retry(operationId: string) {
          const message = listOf(conversationId).find((known) => known.operationId === operationId)
          if (message?.state === 'failed') change(conversationId, message, { state: 'waiting' })
          endPauses([conversationId])
          void sendAll(conversationId)
        },

        /** Removes a rejected reply and returns its text. */
        discard(operationId: string) {
          const body = listOf(conversationId).find((known) => known.operationId === operationId)?.body ?? ''
          remove(conversationId, operationId)
          return body
        },

        /** Removes the reply. Call when the conversation contains its message. */
        confirm: (operationId: string) => {
          if (listOf(conversationId).some((known) => known.operationId === operationId))
            remove(conversationId, operationId)
        },

        close() {
          if (listeners.get(conversationId) === onSent) listeners.delete(conversationId)
        },
      }
    },
  }
}

const isTemporary = ({ ambiguous, code }: Failure) =>
  ambiguous || code === 'RateLimited' || code === 'ResourceExhausted'
