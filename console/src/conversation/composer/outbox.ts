import { computed, signal } from '@preact/signals'
import type { Conversation, Message } from '#proto/messaging/v1/messaging_pb.js'
import { backoffDelay, createPause, type Pause } from '../../../../browser/pause.ts'
import type { Clock } from '../../../../browser/platform.ts'
import type { Api } from '../../api.ts'
import { describeFailure, type Failure } from '../../failures.ts'
import { newOperationId } from '../../operations.ts'
import type { ShownAgent } from '../../session.ts'

/** A reply that the service has not confirmed. */
interface Unsent {
  operationId: string
  body: string
  /** The agent's name in the first attempt. A retry of an operation must have the same input. */
  agentName: string
  /** The agent's picture in the first attempt. */
  avatarUrl?: string | undefined
  /** True if the conversation is closed after this reply. */
  closes?: boolean
}

export type Drafts = ReturnType<typeof createDrafts>

/** A draft of an internal note. It is apart from the draft of the reply and never sent to visitors. */
interface NoteDraft {
  body: string
  /** The last attempt to add this note. Unset when the service has confirmed it. */
  attempt?: { operationId: string; body: string }
}

interface Draft {
  text: string
  unsent: Unsent[]
  note: NoteDraft
  /** True if the operator was writing the note and not the reply. */
  isNote: boolean
}

const noDraft: Draft = { text: '', unsent: [], note: { body: '' }, isNote: false }

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>

/** Stores the drafts of one operator in the tab, over reloads and expired sessions. */
export function createDrafts(storage: Storage, owner: string) {
  const key = 'service.console.drafts'
  const stored = signal(read())

  function read(): Record<string, Draft> {
    try {
      const saved = JSON.parse(storage.getItem(key) ?? '{}')
      return saved.owner === owner ? saved.conversations : {}
    } catch {
      return {}
    }
  }

  const of = (conversationId: string): Draft => ({ ...noDraft, ...stored.value[conversationId] })

  return {
    of,
    keep(conversationId: string, change: Partial<Draft>) {
      const draft = { ...of(conversationId), ...change }
      const { [conversationId]: _, ...others } = stored.value
      stored.value = draft.isNote || hasText(draft) ? { ...others, [conversationId]: draft } : others
      try {
        storage.setItem(key, JSON.stringify({ owner, conversations: stored.value }))
      } catch {
        // The storage is full. The drafts stay in memory, and a reload loses them.
      }
    },
    conversationsWithUnsent: () => Object.keys(stored.value).filter((id) => of(id).unsent.length > 0),
    /** Returns the number of conversations with a draft or an unsent reply. */
    count: () => Object.keys(stored.value).filter((id) => hasText(of(id))).length,
    clear() {
      stored.value = {}
      storage.removeItem(key)
    },
  }
}

const hasText = ({ text, unsent, note }: Draft) => text !== '' || unsent.length > 0 || note.body !== ''

/** A reply of the operator that the conversation does not contain yet. */
export interface OutgoingMessage extends Unsent {
  /** `waiting`: sent by itself. `failed`: the service rejected the reply, or the closing after it. */
  state: 'sending' | 'waiting' | 'failed'
  /** True if the conversation contains the reply, and only its closing is left. */
  isSent?: boolean
  failure?: Failure
}

export type Outbox = ReturnType<typeof createOutbox>

const sendTimeoutMs = 15_000
const pauseRange = { minMs: 1_000, maxMs: 15_000 }

interface OutboxListener {
  onSent(message: Message): void
  /** Called when a reply of *Send and close* has closed the conversation. */
  onClosed(conversation: Conversation): void
}

interface OutboxDeps {
  messaging: Pick<Api['messaging'], 'sendAgentMessage' | 'closeConversation'>
  drafts: Drafts
  agent: () => ShownAgent
  clock: Clock
  random: () => number
}

/**
 * Sends the operator's replies in all conversations. A reply keeps its operation ID until it is
 * confirmed or discarded, even after a reload. So the service stores the reply only once. A
 * conversation's replies are sent one at a time, in the order in which they were written.
 */
export function createOutbox({ messaging, drafts, agent, clock, random }: OutboxDeps) {
  const lists = signal<ReadonlyMap<string, readonly OutgoingMessage[]>>(
    new Map(
      drafts
        .conversationsWithUnsent()
        .map((id) => [id, drafts.of(id).unsent.map((unsent) => ({ ...unsent, state: 'waiting' as const }))]),
    ),
  )
  /** Pauses of the conversations whose replies are being sent. */
  const pauses = new Map<string, Pause>()
  const listeners = new Map<string, OutboxListener>()
  let stopped = false

  const listOf = (conversationId: string) => lists.value.get(conversationId) ?? []

  function set(conversationId: string, messages: readonly OutgoingMessage[]) {
    // The drafts of an operator who has signed out must not be stored again.
    if (stopped) return
    const next = new Map(lists.value)
    if (messages.length > 0) next.set(conversationId, messages)
    else next.delete(conversationId)
    lists.value = next
    const unsent = messages.map(({ state: _, failure: __, isSent: ___, ...each }) => each)
    drafts.keep(conversationId, { unsent })
  }

  const find = (conversationId: string, operationId: string) =>
    listOf(conversationId).find((known) => known.operationId === operationId)

  const change = (conversationId: string, operationId: string, state: Partial<OutgoingMessage>) =>
    set(
      conversationId,
      listOf(conversationId).map((known) =>
        known.operationId === operationId ? { ...known, failure: undefined, ...state } : known,
      ),
    )

  const remove = (conversationId: string, operationId: string) =>
    set(
      conversationId,
      listOf(conversationId).filter((message) => message.operationId !== operationId),
    )

  async function sendAll(conversationId: string) {
    if (pauses.has(conversationId)) return
    const pause = createPause(clock)
    pauses.set(conversationId, pause)
    for (let failures = 0; !stopped; ) {
      const message = listOf(conversationId).find(({ state }) => state !== 'failed')
      if (!message) break
      const { operationId } = message
      change(conversationId, operationId, { state: 'sending' })
      const failure = await transmit(conversationId, message)
      failures = failure ? failures + 1 : 0
      if (!failure) remove(conversationId, operationId)
      else if (!isTemporary(failure)) change(conversationId, operationId, { state: 'failed', failure })
      else {
        change(conversationId, operationId, { state: 'waiting', failure })
        await pause.wait(backoffDelay(failures - 1, pauseRange, random))
      }
    }
    pauses.delete(conversationId)
  }

  async function transmit(conversationId: string, outgoing: OutgoingMessage) {
    const { operationId, body, agentName: displayName, avatarUrl, closes } = outgoing
    const options = { timeoutMs: sendTimeoutMs }
    try {
      // A repeat of a stored reply has no effect, so it does not reopen the conversation.
      const { message } = await messaging.sendAgentMessage(
        { conversationId, clientOperationId: operationId, body, agent: { displayName, avatarUrl } },
        options,
      )
      if (message) listeners.get(conversationId)?.onSent(message)
      if (!closes) return undefined
      change(conversationId, operationId, { state: 'sending', isSent: true })
      const { conversation } = await messaging.closeConversation({ conversationId }, options)
      if (conversation) listeners.get(conversationId)?.onClosed(conversation)
      return undefined
    } catch (error) {
      return describeFailure(error)
    }
  }

  function endPauses(conversationIds: Iterable<string>) {
    for (const conversationId of [...conversationIds]) pauses.get(conversationId)?.end()
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

    open(conversationId: string, onSent: OutboxListener['onSent'], onClosed: OutboxListener['onClosed'] = () => {}) {
      const listener = { onSent, onClosed }
      listeners.set(conversationId, listener)
      return {
        /** The replies that the operator has to see: not those that are sent and wait for the closing. */
        list: computed(() => listOf(conversationId).filter(({ isSent, state }) => !isSent || state === 'failed')),

        /** With `closes`, the reply closes its conversation, even if the operator has opened another one. */
        send(body: string, { closes = false } = {}) {
          const { displayName: agentName, avatarUrl } = agent()
          const unsent = { operationId: newOperationId(), body, agentName, avatarUrl, closes }
          const message = { ...unsent, state: 'waiting' as const }
          set(conversationId, [...listOf(conversationId), message])
          void sendAll(conversationId)
        },

        /** Sends a waiting or rejected reply now, with the same operation ID. */
        retry(operationId: string) {
          if (find(conversationId, operationId)?.state === 'failed')
            change(conversationId, operationId, { state: 'waiting' })
          endPauses([conversationId])
          void sendAll(conversationId)
        },

        /** Removes a rejected reply and returns its text. */
        discard(operationId: string) {
          const { body = '' } = find(conversationId, operationId) ?? {}
          remove(conversationId, operationId)
          return body
        },

        /** Removes the reply, unless its closing is left. Call when the conversation contains its message. */
        confirm: (operationId: string) => {
          if (find(conversationId, operationId)?.closes) change(conversationId, operationId, { isSent: true })
          else remove(conversationId, operationId)
        },

        close() {
          if (listeners.get(conversationId) === listener) listeners.delete(conversationId)
        },
      }
    },
  }
}

const isTemporary = ({ ambiguous, code }: Failure) =>
  ambiguous || code === 'RateLimited' || code === 'ResourceExhausted'
