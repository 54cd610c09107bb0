import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect'
import {
  AgentSchema,
  type Conversation,
  ConversationSchema,
  ConversationStatus,
  type Message,
  MessageSchema,
  type MessagingService,
  NoteSchema,
  type Presence,
  type WatchConversationsResponseSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { type EventInit, operatorOf, type StoredConversation, searchIn, shown } from './stored-conversation.ts'

type Frame = MessageInitShape<typeof WatchConversationsResponseSchema>['frame']

/** Fake conversations in memory, with sequence numbers. `publish` sends stream frames to all watchers. */
export function fakeConversations(publish: (frame: Frame) => void) {
  const stored = new Map<string, StoredConversation>()
  const operations = new Map<string, Message>()
  const presences = new Map<string, Presence>()
  const ranks = ['queued', 'sent', 'delivered', 'read']

  function found(conversationId: string): StoredConversation {
    const entry = stored.get(conversationId)
    if (!entry) throw new ConnectError('NotFound', Code.NotFound)
    return entry
  }

  function changed(entry: StoredConversation, ...given: EventInit[]) {
    const events = given.map((event) => ({ occurredAt: timestampFromMs(Date.now()), ...event }))
    const { visitor: _, lastMessage: __, ...conversation } = shown(entry)
    entry.events.push(...events)
    publish({ case: 'changed', value: { conversation, events } })
  }

  /** Reports an event with the next sequence. */
  function append(entry: StoredConversation, event: EventInit) {
    entry.sequence += 1
    changed(entry, { sequence: entry.sequence, ...event })
  }

  function put(
    entry: StoredConversation,
    kind: string,
    body: string,
    more: { displayName?: string; at?: number; state?: string } = {},
  ) {
    entry.sequence += 1
    const message = create(MessageSchema, {
      messageId: `msg_${entry.conversation.conversationId}_${entry.sequence}`,
      conversationId: entry.conversation.conversationId,
      sequence: entry.sequence,
      author: { kind, ...(more.displayName && { displayName: more.displayName }) },
      body,
      contentType: 'text',
      state: more.state ?? 'sent',
      createdAt: timestampFromMs(more.at ?? Date.now()),
    })
    entry.messages.push(message)
    entry.conversation.status = ConversationStatus.OPEN
    return message
  }

  function changeTags(conversationId: string, type: string, tag: string) {
    const entry = found(conversationId)
    const others = entry.conversation.tags.filter((one) => one !== tag)
    entry.conversation.tags = type === 'conversation.tagged' ? [...others, tag] : others
    entry.sequence += 1
    changed(entry, { sequence: entry.sequence, type, tag })
    return { conversation: shown(entry) }
  }

  const methods = {
    async listConversations({ status, limit = 50, pageToken, assignee, unanswered, countForOperator, tag }) {
      const listed = [...stored.values()].map(shown).filter((one) => one.lastSequence > 0)
      const isOf = ({ agent }: Conversation, { case: name, value }: typeof assignee) =>
        name === undefined || (name === 'unassigned' ? agent === undefined : operatorOf(agent) === value)
      const open = listed.filter((one) => one.status !== ConversationStatus.CLOSED)
      const waits = open.filter(({ waitingSince }) => waitingSince)
      const all = (unanswered ? waits : listed)
        .filter((one) => (!status || one.status === status) && isOf(one, assignee) && (!tag || one.tags.includes(tag)))
        .sort((one, other) =>
          unanswered
            ? Number(one.waitingSince!.seconds - other.waitingSince!.seconds)
            : Number(other.lastMessageAt!.seconds - one.lastMessageAt!.seconds),
        )
      const counts =
        countForOperator === undefined
          ? undefined
          : {
              unanswered: waits.length,
              mine: open.filter((one) => isOf(one, { case: 'operatorId', value: countForOperator })).length,
              unassigned: open.filter((one) => isOf(one, { case: 'unassigned', value: true })).length,
              open: open.length,
            }
      const from = Number(pageToken ?? 0)
      const more = all.length > from + limit
      return {
        counts,
        conversations: all.slice(from, from + limit),
        ...(more && { nextPageToken: String(from + limit) }),
      }
    },

    async searchConversations(request) {
      return searchIn([...stored.values()], request)
    },

    async getConversation({ conversationId }) {
      return { conversation: { ...shown(found(conversationId)), canRequestRating: true } }
    },

    async listConversationEvents({ conversationId, afterSequence, beforeSequence = Number.POSITIVE_INFINITY }) {
      const isListed = ({ type, sequence = 0 }: EventInit) =>
        sequence > afterSequence && sequence < beforeSequence && !/^(message|typing)/.test(type ?? '')
      return { events: found(conversationId).events.filter(isListed) }
    },

    async listMessages({ conversationId, afterSequence, beforeSequence, limit = 50 }) {
      const { messages, sequence } = found(conversationId)
      const fitting = messages.filter((message) =>
        beforeSequence === undefined ? message.sequence > (afterSequence ?? 0) : message.sequence < beforeSequence,
      )
      const page = beforeSequence === undefined ? fitting.slice(0, limit) : fitting.slice(-limit)
      const oldestSequence = messages[0]?.sequence ?? 0
      return { messages: page, hasMore: fitting.length > limit, lastSequence: sequence, oldestSequence }
    },

    async sendAgentMessage({ conversationId, clientOperationId, body, agent }) {
      const entry = found(conversationId)
      const known = operations.get(`${conversationId} ${clientOperationId}`)
      if (known) return { message: known, replayed: true }
      const message = put(entry, 'agent', body, { displayName: agent?.displayName })
      operations.set(`${conversationId} ${clientOperationId}`, message)
      changed(entry, { sequence: message.sequence, type: 'message.received', message, clientOperationId })
      return { message }
    },

    async redactMessage({ conversationId, sequence }) {
      const entry = found(conversationId)
      const redactedAt = timestampFromMs(Date.now())
      entry.messages = entry.messages.map((one) => (one.sequence === sequence ? { ...one, body: '', redactedAt } : one))
      const message = entry.messages.find((one) => one.sequence === sequence)!
      const { messageId } = message
      append(entry, { type: 'message.redacted', messageId, occurredAt: redactedAt })
      return { message }
    },

    async setTyping() {
      return {}
    },

    async updateMessageState({ conversationId, upToSequence, state }) {
      const entry = found(conversationId)
      let count = 0
      entry.messages = entry.messages.map((message) => {
        const counts =
          message.author?.kind === 'visitor' &&
          message.sequence <= upToSequence &&
          ranks.indexOf(message.state) < ranks.indexOf(state)
        if (!counts) return message
        count += 1
        const { messageId } = message
        append(entry, { type: 'message.state.changed', messageId, state })
        return { ...message, state }
      })
      return { changed: count, remaining: 0 }
    },

    async assignAgent({ conversationId, agent }) {
      const entry = found(conversationId)
      entry.conversation.agent = agent
      append(entry, { type: 'agent.assigned', agent })
      return { conversation: shown(entry) }
    },

    async addTag({ conversationId, tag }) {
      return changeTags(conversationId, 'conversation.tagged', tag.toLowerCase())
    },

    async removeTag({ conversationId, tag }) {
      return changeTags(conversationId, 'conversation.untagged', tag)
    },

    async listTags() {
      return { tags: [...new Set([...stored.values()].flatMap(({ conversation }) => conversation.tags))] }
    },

    async unassignAgent({ conversationId }) {
      const entry = found(conversationId)
      const { agent } = entry.conversation
      entry.conversation.agent = undefined
      append(entry, { type: 'agent.unassigned', agent })
      return { conversation: shown(entry) }
    },

    async closeConversation({ conversationId, requestRating }) {
      const entry = found(conversationId)
      entry.conversation.status = ConversationStatus.CLOSED
      append(entry, { type: requestRating ? 'rating.requested' : 'conversation.closed' })
      return { conversation: shown(entry) }
    },

    async reopenConversation({ conversationId }) {
      const entry = found(conversationId)
      entry.conversation.status = ConversationStatus.OPEN
      append(entry, { type: 'conversation.reopened' })
      return { conversation: shown(entry) }
    },

    async addNote({ conversationId, clientOperationId, body, agent }) {
      const { notes } = found(conversationId)
      const noteId = `note_${clientOperationId}`
      const known = notes.find((note) => note.noteId === noteId)
      if (known) return { note: known }
      const note = create(NoteSchema, { noteId, body, author: agent, createdAt: timestampFromMs(Date.now()) })
      notes.push(note)
      publish({ case: 'notes', value: { conversationId } })
      return { note }
    },

    async listNotes({ conversationId }) {
      return { notes: found(conversationId).notes }
    },
  } satisfies Partial<ServiceImpl<typeof MessagingService>>

  return {
    methods,
    messages: (conversationId: string) => found(conversationId).messages,
    notes: (conversationId: string) => found(conversationId).notes,
    conversation: (conversationId: string) => shown(found(conversationId)),

    /** Adds a conversation. The inbox stream sends no event for it. */
    add(conversation: MessageInitShape<typeof ConversationSchema> & { conversationId: string }) {
      stored.set(conversation.conversationId, {
        conversation: create(ConversationSchema, {
          workspaceId: 'ws_shop',
          connectionId: 'con_site',
          createdAt: timestampFromMs(Date.now()),
          status: ConversationStatus.OPEN,
          visitor: { identityState: 'anonymous' },
          ...conversation,
        } as MessageInitShape<typeof ConversationSchema>),
        messages: [],
        sequence: 0,
        notes: [],
        events: [],
      })
    },

    /** Adds an earlier message without an event. */
    past(conversationId: string, kind: 'visitor' | 'agent', body: string, secondsAgo: number, state?: string) {
      const more = { at: Date.now() - secondsAgo * 1000, state, ...(kind === 'agent' && { displayName: 'Ada' }) }
      return put(found(conversationId), kind, body, more)
    },

    /** Adds a message of the visitor and sends it to all watchers. */
    visitorSays(conversationId: string, body: string) {
      const entry = found(conversationId)
      const message = put(entry, 'visitor', body)
      changed(entry, { sequence: message.sequence, type: 'message.accepted', message })
      return message
    },

    types(conversationId: string, author: { kind: string; displayName?: string }) {
      append(found(conversationId), { type: 'typing.started', author })
    },

    visitorTypes(conversationId: string, types: boolean) {
      append(found(conversationId), { type: types ? 'typing.started' : 'typing.stopped', author: { kind: 'visitor' } })
    },

    /** Adds the visitor's rating and sends it to all watchers. */
    rate(conversationId: string, score: number, comment: string) {
      const entry = found(conversationId)
      entry.conversation.rating = score
      append(entry, { type: 'rating.given', rating: { score, comment } })
    },

    setPresence(conversationId: string, presence: Presence) {
      presences.set(conversationId, presence)
      publish({ case: 'presence', value: { conversations: [{ conversationId, presence }] } })
    },

    /** Returns the frame with the presence of all visitors. A stream sends it after `ready`. */
    presenceFrame(): Frame {
      const conversations = [...presences].map(([conversationId, presence]) => ({ conversationId, presence }))
      return { case: 'presence', value: { complete: true, conversations } }
    },

    /** Adds an event that is not a message, and sends it to all watchers. */
    happens: (conversationId: string, type: string) => append(found(conversationId), { type }),

    /** Erases the conversation and tells all watchers, unless none is `told`. */
    erase(conversationId: string, isTold = true) {
      stored.delete(conversationId)
      if (isTold) publish({ case: 'removed', value: { conversationIds: [conversationId] } })
    },

    assign(conversationId: string, displayName: string) {
      found(conversationId).conversation.agent = create(AgentSchema, { displayName })
    },

    close(conversationId: string) {
      found(conversationId).conversation.status = ConversationStatus.CLOSED
    },
  }
}
