import { Code, ConnectError } from '@connectrpc/connect'
import { signal } from '@preact/signals'
import type { Command } from '#proto/command/v1/command_pb.js'
import type { Conversation, GrownMessage, InboxEvent, Message, Note } from '#proto/messaging/v1/messaging_pb.js'
import type { Session } from '#proto/session/v1/session_pb.js'
import { createReceipts } from '../../../browser/chat/receipts.ts'
import { withPart } from '../../../browser/growing-text.ts'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import { summaryOf } from '../inbox/conversation-record.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { typingLastsMs } from '../inbox/inbox.ts'
import type { ShownAgent } from '../session.ts'
import { millisecondsOf } from '../time.ts'
import type { Outbox } from './composer/outbox.ts'
import { createConversationEvents } from './messages/conversation-events.ts'
import { mergeMessages, withdrawn, withState } from './messages/message-merge.ts'
import { eventText } from './messages/timeline.ts'
import { createThreadActions } from './thread-actions.ts'

export type Thread = ReturnType<typeof createThread>

interface ThreadDeps {
  api: Pick<Api, 'messaging' | 'sessions'>
  inbox: Pick<Inbox, 'follow' | 'update'>
  outbox: Pick<Outbox, 'open'>
  conversationId: string
  /** Returns the name and picture of the signed-in operator, as visitors see them. */
  agent: () => ShownAgent
  /** Called with each new message of the visitor. */
  onVisitorMessage: (message: Message) => void
  now: () => number
}

const pageSize = 50
const beyondTheEnd = 2 ** 31 - 1

/**
 * Provides one open conversation to its view. Loads the messages and the visitor's session, keeps
 * them up to date, and sends the operator's replies and other actions.
 */
export function createThread(deps: ThreadDeps) {
  const { api, inbox, outbox, conversationId, agent, onVisitorMessage, now } = deps
  const { messaging, sessions } = api
  const conversation = signal<Conversation | undefined>(undefined)
  const messages = signal<readonly Message[]>([])
  /** Notes of operators, oldest first. Visitors never see them. */
  const notes = signal<readonly Note[]>([])
  const happened = createConversationEvents(messaging, conversationId)
  /** Latest requests to the visitor's page. The panel of requests loads them. */
  const commands = signal<readonly Command[]>([])
  const hasOlder = signal(false)
  /** True until the first page of messages has loaded or failed to load. */
  const loading = signal(true)
  const loadingOlder = signal(false)
  const failure = signal<Failure | undefined>(undefined)
  const visitorTypes = signal(false)
  const session = signal<Session | undefined>(undefined)
  /**
   * Number of received events about navigation and screenshot requests. Each increase reloads the
   * list of requests.
   */
  const commandChanges = signal(0)
  /** Number of closings after a reply of this view. */
  const closings = signal(0)
  let stopped = false
  let visible = false
  let isReading = false
  let typingTimer: ReturnType<typeof setTimeout> | undefined

  const outgoing = outbox.open(
    conversationId,
    (message) => add([message]),
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
    await happened.load(firstLoaded() - 1)
  }

  /** Sequence from which all messages and events are loaded. */
  const firstLoaded = () => (hasOlder.value ? (messages.value[0]?.sequence ?? 1) : 1)

  /** Shows nothing more of the conversation, because it was erased. */
  function drop(reason: Failure) {
    conversation.value = session.value = undefined
    messages.value = []
    notes.value = []
    commands.value = []
    happened.list.value = []
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
    if (!sessionId) return
    const found = await sessions.getSession({ sessionId }).catch(() => undefined)
    if (found?.session && !stopped) session.value = found.session
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
    if (eventText(event, '') !== undefined) happened.add([event])
    if (event.form) void happened.load(event.sequence - 1)
    if (message) {
      const isNew = !messages.value.some((known) => known.messageId === message.messageId)
      if (clientOperationId !== undefined) outgoing.confirm(clientOperationId)
      add([message])
      if (isNew && message.author?.kind === 'visitor') {
        setVisitorTypes(false)
        onVisitorMessage(message)
      }
    } else if (type === 'message.state.changed' && messageId !== undefined && state !== undefined) {
      messages.value = withState(messages.value, messageId, state)
    } else if (type === 'message.redacted') {
      messages.value = messages.value.map((one) => (one.messageId === messageId ? withdrawn(one, occurredAt) : one))
    } else if (type.startsWith('typing.') && author?.kind === 'visitor') {
      const age = now() - millisecondsOf(occurredAt)
      setVisitorTypes(type === 'typing.started' && age < typingLastsMs)
    } else if (/^(navigation|screenshot)\./.test(type)) commandChanges.value += 1
  }

  function setVisitorTypes(types: boolean) {
    clearTimeout(typingTimer)
    visitorTypes.value = types
    if (types) typingTimer = setTimeout(() => setVisitorTypes(false), typingLastsMs)
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
      await happened.load(firstLoaded() - 1, first.sequence)
      failure.value = undefined
    } catch (error) {
      failure.value = describeFailure(error)
    } finally {
      loadingOlder.value = false
    }
  }

  const actions = createThreadActions({
    messaging,
    conversationId,
    agent,
    onMessage: (message) => add([message]),
    onConversation,
    onNoteAdded: loadNotes,
    now,
  })
  const unfollow = inbox.follow(conversationId, {
    onGap: () => void reload(),
    onChange,
    onGrew,
    onNotes: () => void (conversation.value ? loadNotes() : reload()),
    onRemoved: () => drop(describeFailure(new ConnectError('erased', Code.NotFound))),
  })
  const firstLoad = reload()

  return {
    ...actions,
    conversationId,
    conversation,
    messages,
    notes,
    events: happened.list,
    commands,
    hasOlder,
    loading,
    loadingOlder,
    failure,
    visitorTypes,
    session,
    commandChanges,
    closings,
    outgoing,
    reload,
    refreshSession,

    loadOlder,

    /**
     * Loads older messages until the message with this sequence is loaded, or a page fails to load.
     */
    async reveal(sequence: number) {
      await firstLoad
      while (hasOlder.value && !stopped && (messages.value[0]?.sequence ?? 0) > sequence) {
        await loadOlder()
        if (failure.value) return
      }
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
      clearTimeout(typingTimer)
      unfollow()
    },
  }
}
