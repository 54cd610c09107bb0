import { Code, ConnectError } from '@connectrpc/connect'
import { signal } from '@preact/signals'
import {
  type Author,
  type Conversation,
  type GrownMessage,
  type InboxEvent,
  type Message,
  type Note,
  TypingState,
} from '#proto/messaging/v1/messaging_pb.js'
import type { Session } from '#proto/session/v1/session_pb.js'
import { withPart } from '../../../browser/chat/messages.ts'
import { createReceipts } from '../../../browser/chat/receipts.ts'
import type { Console } from '../console-context.ts'
import { describeFailure, type Failure } from '../failures.ts'
import { summaryOf } from '../inbox/conversation-record.ts'
import { typingLastsMs } from '../inbox/inbox.ts'
import type { ShownAgent } from '../session.ts'
import { assignsAnswered } from '../storages.ts'
import { millisecondsOf } from '../time.ts'
import { mergeMessages, withdrawn, withState } from './messages/messages.ts'
import { eventText } from './messages/timeline.ts'

export type Assignee = ShownAgent & { operatorId?: string | undefined }

export type Thread = ReturnType<typeof createThread>

const pageSize = 50
const typingRepeatMs = 5000
const beyondTheEnd = 2 ** 31 - 1

/** Provides one open conversation to its view, and keeps it up to date. */
export function createThread({ api, inbox, outbox, session: me, holder, announcer }: Console, conversationId: string) {
  const { messaging, sessions } = api
  const { agent } = holder
  const conversation = signal<Conversation | undefined>(undefined)
  const messages = signal<readonly Message[]>([])
  /** Notes of operators, oldest first. Visitors never see them. */
  const notes = signal<readonly Note[]>([])
  /** Events that the timeline shows between the messages, in order. */
  const happened = signal<readonly InboxEvent[]>([])
  const hasOlder = signal(false)
  /** True until the first page of messages has loaded or failed to load. */
  const loading = signal(true)
  const loadingOlder = signal(false)
  const failure = signal<Failure | undefined>(undefined)
  /** Names of the colleagues who are typing. An empty name stands for the visitor. */
  const typists = signal<readonly string[]>([])
  /** Undefined until it is known. Null if the service has no session of this visitor. */
  const session = signal<Session | null | undefined>(undefined)
  /** Number of received events about requests. Each increase reloads the list of requests. */
  const commandChanges = signal(0)
  /** Number of closings after a reply of this view. */
  const closings = signal(0)
  let stopped = false
  let visible = false
  let isReading = false
  let assigning: Promise<void> | undefined
  const typingTimers = new Map<string, ReturnType<typeof setTimeout>>()
  let typingSentAt = 0
  let typingSent = false

  const outgoing = outbox.open(
    conversationId,
    (message) => {
      add([message])
      assignToMe()
    },
    (closed) => {
      onConversation(closed)
      closings.value += 1
    },
  )

  /** Marks the visitor's messages as `delivered` when they are loaded, and as `read` when the operator sees them. */
  const sendReceipts = createReceipts({
    received: () => (stopped ? [] : messages.value.filter(({ author }) => author?.kind === 'visitor')),
    readTo: () => Number.POSITIVE_INFINITY,
    isHidden: () => !visible,
    async report(upToSequence, state) {
      for (let remaining = 1; remaining > 0; ) {
        ;({ remaining } = await messaging.updateMessageState({ conversationId, upToSequence, state }))
      }
      for (const { messageId, sequence, author } of messages.value) {
        if (author?.kind === 'visitor' && sequence <= upToSequence)
          messages.value = withState(messages.value, messageId, state)
      }
    },
  })

  function add(more: readonly Message[]) {
    messages.value = mergeMessages(messages.value, more)
    void sendReceipts()
  }

  async function loadLatest() {
    const known = messages.value.at(-1)?.sequence
    const [page, found] = await Promise.all([
      messaging.listMessages({ conversationId, beforeSequence: beyondTheEnd, limit: pageSize }),
      messaging.getConversation({ conversationId }),
    ])
    // If messages are missing between the known messages and this page, load them.
    const oldest = page.messages[0]?.sequence ?? 0
    for (let after = known; after !== undefined && after < oldest; ) {
      const missed = await messaging.listMessages({ conversationId, afterSequence: after, limit: pageSize })
      add(missed.messages)
      after = missed.hasMore ? missed.messages.at(-1)?.sequence : undefined
    }
    if (known === undefined) hasOlder.value = page.hasMore
    add(page.messages)
    conversation.value = found.conversation
    await loadEvents(firstLoaded() - 1)
  }

  function addEvents(more: readonly InboxEvent[]) {
    const bySequence = new Map([...happened.value, ...more].map((event) => [event.sequence, event]))
    happened.value = [...bySequence.values()].sort((one, other) => one.sequence - other.sequence)
  }

  /** Loads the events in this range. Never rejects: the next reload tries again. */
  async function loadEvents(after: number | undefined, beforeSequence?: number) {
    while (after !== undefined) {
      const range = { conversationId, afterSequence: after, beforeSequence, limit: 2 * pageSize }
      const page = await messaging.listConversationEvents(range).catch(() => undefined)
      addEvents(page?.events ?? [])
      after = page?.hasMore ? page.events.at(-1)?.sequence : undefined
    }
  }

  /** Sequence from which all messages and events are loaded. */
  const firstLoaded = () => (hasOlder.value ? (messages.value[0]?.sequence ?? 1) : 1)

  /** Shows nothing more of the conversation, because it was erased. */
  function drop(reason: Failure) {
    conversation.value = session.value = undefined
    messages.value = []
    notes.value = []
    happened.value = []
    failure.value = reason
  }

  async function reload() {
    try {
      await loadLatest()
      failure.value = undefined
    } catch (error) {
      const found = describeFailure(error)
      if (found.missing) return drop(found)
      failure.value = found
    } finally {
      loading.value = false
    }
    await Promise.all([refreshSession(), loadNotes()])
  }

  async function loadNotes() {
    const found = await messaging.listNotes({ conversationId }).catch(() => undefined)
    if (found && !stopped) notes.value = found.notes
  }

  async function refreshSession() {
    const sessionId = conversation.value?.sessionId
    const found = sessionId ? await sessions.getSession({ sessionId }).catch(() => undefined) : undefined
    if (!stopped) session.value = found?.session ?? session.value ?? null
  }

  function onChange(next: Conversation, events: InboxEvent[]) {
    const before = conversation.value
    conversation.value = { ...next, ...summaryOf(before) }
    for (const event of events) apply(event)
    if (before?.sessionId !== next.sessionId || events.some(({ type }) => type.startsWith('session.')))
      void reloadConversation()
  }

  function onGrew({ messageId, offset, text }: GrownMessage) {
    const known = messages.value.find((one) => one.messageId === messageId)
    if (!known?.growing) return
    const body = withPart(known.body, offset, text)
    if (body !== undefined) messages.value = messages.value.map((one) => (one === known ? { ...one, body } : one))
    else if (!isReading) void readAgain(known.sequence)
  }

  async function readAgain(sequence: number) {
    isReading = true
    const page = await messaging
      .listMessages({ conversationId, afterSequence: sequence - 1, limit: 1, peek: true })
      .catch(() => undefined)
    isReading = false
    if (page && !stopped) add(page.messages)
  }

  async function reloadConversation() {
    const found = await messaging.getConversation({ conversationId }).catch(() => undefined)
    if (found?.conversation) conversation.value = found.conversation
    await refreshSession()
  }

  function apply(event: InboxEvent) {
    const { type, message, author, occurredAt, messageId, state, clientOperationId } = event
    if (eventText(event, '') !== undefined) addEvents([event])
    if (event.form) void loadEvents(event.sequence - 1)
    if (message) {
      const isNew = !messages.value.some((known) => known.messageId === message.messageId)
      if (clientOperationId !== undefined) outgoing.confirm(clientOperationId)
      add([message])
      setTypes(typistOf(message.author), false)
      if (isNew && message.author?.kind === 'visitor') announcer.say(`New message: ${message.body}`)
    } else if (type === 'message.state.changed' && messageId !== undefined && state !== undefined) {
      messages.value = withState(messages.value, messageId, state)
    } else if (type === 'message.redacted') {
      messages.value = messages.value.map((one) => (one.messageId === messageId ? withdrawn(one, occurredAt) : one))
    } else if (type.startsWith('typing.')) {
      const age = Date.now() - millisecondsOf(occurredAt)
      setTypes(typistOf(author), type === 'typing.started' && age < typingLastsMs)
    } else if (/^(navigation|screenshot)\./.test(type)) commandChanges.value += 1
  }

  /** Returns undefined for the operator's own typing, in this or another tab, and for a bot's. */
  function typistOf(author: Author | undefined) {
    if (author?.kind === 'visitor') return ''
    return author?.kind === 'agent' && author.displayName !== agent().displayName ? author.displayName : undefined
  }

  function setTypes(name: string | undefined, types: boolean) {
    if (name === undefined) return
    clearTimeout(typingTimers.get(name))
    typists.value = [...typists.value.filter((other) => other !== name), ...(types ? [name] : [])]
    if (types) typingTimers.set(name, setTimeout(setTypes, typingLastsMs, name, false))
  }

  function onConversation(updated: Conversation) {
    inbox.update(updated)
    conversation.value = { ...updated, ...summaryOf(conversation.value) }
  }

  async function loadOlder() {
    const first = messages.value[0]
    if (!first || loadingOlder.value) return
    loadingOlder.value = true
    try {
      const page = await messaging.listMessages({ conversationId, beforeSequence: first.sequence, limit: pageSize })
      hasOlder.value = page.hasMore
      add(page.messages)
      await loadEvents(firstLoaded() - 1, first.sequence)
      failure.value = undefined
    } catch (error) {
      failure.value = describeFailure(error)
    } finally {
      loadingOlder.value = false
    }
  }

  /** Shows the conversation that a call returns, here and in the list. */
  async function take(call: Promise<{ conversation?: Conversation }>) {
    const { conversation } = await call
    if (conversation) onConversation(conversation)
  }

  const assign = (assignee: Assignee | undefined) =>
    take(
      assignee === undefined
        ? messaging.unassignAgent({ conversationId })
        : messaging.assignAgent({ conversationId, agent: assignee, operatorId: assignee.operatorId }),
    )

  /** Assigns an answered conversation that nobody has. */
  function assignToMe() {
    const begin = () =>
      !assignsAnswered.peek() || conversation.value?.agent
        ? undefined
        : assign({ ...agent(), operatorId: me.operator }).catch(() => {})
    assigning = assigning ? assigning.then(begin) : begin()
  }

  /**
   * Assigns the conversation first, so that the visitor learns who answers. If that fails, assigns it
   * when the reply is stored.
   */
  function reply(body: string, options: { closes: boolean }) {
    assignToMe()
    outgoing.send(body, options)
  }

  const unfollow = inbox.follow(conversationId, {
    onGap: () => void reload(),
    onChange,
    onGrew,
    onNotes: () => void (conversation.value ? loadNotes() : reload()),
    onRemoved: () => drop(describeFailure(new ConnectError('erased', Code.NotFound))),
  })
  const firstLoad = reload()

  return {
    conversationId,
    conversation,
    messages,
    notes,
    events: happened,
    hasOlder,
    loading,
    loadingOlder,
    failure,
    typists,
    session,
    commandChanges,
    closings,
    outgoing,
    reply,
    reload,
    refreshSession,
    loadOlder,

    /** Loads older messages until the message with this sequence is loaded, or a page fails. */
    async reveal(sequence: number) {
      await firstLoad
      while (hasOlder.value && !stopped && (messages.value[0]?.sequence ?? 0) > sequence) {
        await loadOlder()
        if (failure.value) return
      }
    },

    async withdraw({ sequence }: Message) {
      const { message } = await messaging.redactMessage({ conversationId, sequence, agent: agent() })
      if (message) add([message])
    },

    /** Tells the visitor that the operator types or has stopped. Never rejects. */
    setTyping(types: boolean) {
      if (!types && !typingSent) return
      if (types && typingSent && Date.now() - typingSentAt < typingRepeatMs) return
      typingSent = types
      typingSentAt = Date.now()
      const state = types ? TypingState.STARTED : TypingState.STOPPED
      messaging.setTyping({ conversationId, state, agent: agent() }).catch(() => {})
    },

    assign,
    take,

    /** Adds a note. A repeat with the same operation ID adds no second note. */
    async addNote(body: string, clientOperationId: string) {
      await messaging.addNote({ conversationId, clientOperationId, body, agent: agent() })
      await loadNotes()
    },

    /** Sets whether the operator sees the messages. */
    setVisible(isVisible: boolean) {
      visible = isVisible
      if (visible) void sendReceipts()
    },

    setSession(changed: Session | undefined) {
      if (changed) session.value = changed
    },

    stop() {
      stopped = true
      outgoing.close()
      for (const timer of typingTimers.values()) clearTimeout(timer)
      unfollow()
    },
  }
}
