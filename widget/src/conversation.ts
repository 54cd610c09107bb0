import type { Emitter } from './events.ts'
import { createMessageList } from './message-list.ts'
import type {
  AcceptedMessage,
  MessageAuthor,
  MessageState,
  ServiceMessage,
  StreamEvent,
  WidgetErrorDetail,
  WidgetEventMap,
  WidgetMessage,
} from './types.ts'

/** The messages held, and the events that tell the application what became of each: once, whichever way the news came. */
export function createConversation({ emit }: Emitter<WidgetEventMap>) {
  const messages = createMessageList()
  const announced = new Set<string>()

  return {
    messages,

    addOwn(
      entry: { clientOperationId: string; body: string; contentType: string; locale?: string },
      createdAt: string,
    ) {
      const { clientOperationId, body, contentType, locale } = entry
      const author = { kind: 'visitor' as const }
      const message = messages.addLocal({
        clientOperationId,
        body,
        contentType,
        locale,
        author,
        createdAt,
        state: 'pending',
      })
      emit('message.queued', { message })
      tellChanged()
      return message
    },

    setOwnState(clientOperationId: string, state: MessageState, error?: WidgetErrorDetail) {
      messages.patchLocal(clientOperationId, { state, error })
      tellChanged()
    },

    tellRetrying(clientOperationId: string, attempt: number) {
      const message = messages.byOperation(clientOperationId)
      if (message) emit('message.retrying', { message, attempt })
    },

    tellExhausted(clientOperationId: string, error: WidgetErrorDetail) {
      const message = messages.byOperation(clientOperationId)
      if (message) emit('message.retry.exhausted', { message, error })
    },

    /** The answer of POST /messages, which may come after the event of the same message. */
    takeAnswer(answer: AcceptedMessage) {
      const { messageId, clientOperationId, sessionId, conversationId, sequence, state, acceptedAt } = answer
      const known = { messageId, clientOperationId, sessionId, conversationId, sequence, state, createdAt: acceptedAt }
      announce('message.accepted', messages.merge(known))
      tellChanged()
    },

    /** A message of the history. One that the stream missed is announced as if it had come that way. */
    take(message: ServiceMessage, missed: boolean) {
      const own = message.clientOperationId ? messages.byOperation(message.clientOperationId) : undefined
      const wasUnsent = own !== undefined && !own.messageId
      const merged = messages.merge(message)
      if (message.author.kind !== 'visitor') {
        if (missed) announce('message.received', merged)
      } else if (missed || wasUnsent) {
        announce('message.accepted', merged)
      }
    },

    takeEvent(event: StreamEvent, onOwn: (clientOperationId: string) => void) {
      const { type, data } = event
      if (type === 'message.accepted' || type === 'message.received') {
        const message = data.message as ServiceMessage | undefined
        if (typeof message?.messageId !== 'string') return
        const merged = messages.merge(message)
        if (message.clientOperationId) onOwn(message.clientOperationId)
        announce(type, merged)
        tellChanged()
      } else if (type === 'message.state.changed') {
        const message = messages.setState(String(data.messageId), data.state as MessageState)
        if (message) emit(type, { message })
        tellChanged()
      } else if (type === 'typing.started' || type === 'typing.stopped') {
        emit(type, { author: data.author as MessageAuthor })
      } else if (type === 'agent.assigned' || type === 'agent.unassigned') {
        emit(type, { agent: data.agent as { displayName: string; avatarUrl?: string } })
      } else if (type === 'conversation.closed' || type === 'conversation.reopened' || type === 'session.identified') {
        emit(type, {})
      }
      // Other types are information for newer packages: compatible, and ignored.
    },

    tellChanged,
  }

  function announce(name: 'message.accepted' | 'message.received', message: WidgetMessage | undefined) {
    if (!message?.messageId || announced.has(message.messageId)) return
    announced.add(message.messageId)
    emit(name, { message })
  }

  function tellChanged() {
    emit('messages.changed', { messages: messages.all() })
  }
}
