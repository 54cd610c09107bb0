import type { Emitter } from '../vocabulary/events.ts'
import type { AcceptedMessage, ServiceMessage } from '../vocabulary/gen/wire.ts'
import type {
  DeliveryStatus,
  StoredMessage,
  StreamEvent,
  WidgetErrorDetail,
  WidgetMessage,
} from '../vocabulary/types.ts'
import { createMessageList } from './message-list.ts'
import type { OutboxEntry } from './outbox.ts'

/** Types of the events that are forwarded to the application unchanged. */
const forwardedTypes = [
  'typing.started',
  'typing.stopped',
  'agent.assigned',
  'agent.unassigned',
  'conversation.closed',
  'conversation.reopened',
  'rating.requested',
  'rating.given',
  'session.identified',
]

/** Stores the loaded messages. Emits one event per message, however often it arrives. */
export function createConversation({ emit }: Pick<Emitter, 'emit'>) {
  const messages = createMessageList()
  const announced = new Set<string>()
  let unread = 0
  let readTo: number | undefined

  return {
    messages,

    /** Adds a message of the visitor: pending, or failed if it has an error. */
    addOwn({ input, createdAt, error, failureVersion }: OutboxEntry): WidgetMessage {
      const { pageContext: _notShown, ...shown } = input
      const deliveryStatus = error ? 'failed' : 'pending'
      const author = { kind: 'visitor' } as const
      const message = messages.addLocal({ ...shown, author, createdAt, deliveryStatus, error, failureVersion })
      emitChanged()
      return message
    },

    unread: () => unread,

    setReadTo(sequence: number) {
      readTo = sequence
      emitUnread()
    },

    lastSequence: () => messages.all().findLast(({ sequence }) => sequence)?.sequence ?? 0,

    /**
     * Sets the delivery state of a message that this visitor sent.
     *
     * @param attempt number of the next attempt; undefined if no attempt follows
     */
    setOwnStatus(
      { input: { clientOperationId }, failureVersion }: OutboxEntry,
      deliveryStatus: DeliveryStatus,
      error?: WidgetErrorDetail,
      attempt?: number,
    ) {
      const message = messages.patchLocal(clientOperationId, { deliveryStatus, error, failureVersion })
      emitChanged()
      if (!message || !error) return
      if (attempt) emit('message.retrying', { message, attempt })
      else emit('message.retry.exhausted', { message, error })
    },

    /** Handles the response of POST /messages. The stream may have delivered the message before. */
    mergeAnswer(answer: AcceptedMessage) {
      const { acceptedAt, ...known } = answer
      announce(messages.merge({ ...known, createdAt: acceptedAt }))
      emitChanged()
    },

    /** `missed`: the stream should have delivered the message, so its event is emitted here. */
    merge(message: ServiceMessage, missed: boolean) {
      const { clientOperationId } = message
      const own = clientOperationId && messages.byOperation(clientOperationId)
      const isNew = missed || (own && !own.messageId)
      const merged = messages.merge(message)
      if (isNew) announce(merged)
    },

    /** `onGap` is called with the sequence of a message that must be read again. */
    handleEvent(event: StreamEvent, onOwn: (clientOperationId: string) => void, onGap: (sequence: number) => void) {
      const { type, data } = event
      if (type === 'message.accepted' || type === 'message.received' || type === 'message.completed') {
        const message = data.message as ServiceMessage | undefined
        if (typeof message?.messageId !== 'string') return
        const merged = messages.merge(message)
        if (message.clientOperationId) onOwn(message.clientOperationId)
        announce(merged)
        emitChanged()
      } else if (type === 'message.grew') {
        const messageId = String(data.messageId)
        if (messages.grow(messageId, Number(data.offset), String(data.text))) emitChanged()
        else onGap(messages.byMessageId(messageId)!.sequence!)
      } else if (type === 'message.state.changed' || type === 'message.redacted') {
        const messageId = String(data.messageId)
        const message =
          type === 'message.redacted'
            ? messages.redact(messageId, event.occurredAt)
            : messages.setStatus(messageId, data.state as DeliveryStatus)
        if (message) emit(type, { message })
        emitChanged()
      } else if (forwardedTypes.includes(type)) {
        emit(type as 'session.identified', data as Record<string, never>)
      }
      // An unknown event type is meant for newer versions of this package, so it is ignored.
    },

    /** Removes the messages. Keeps messages that are still being sent, unless `all` is true. */
    clear(all = false) {
      messages.keepOnly(({ messageId, deliveryStatus }) => !all && !messageId && deliveryStatus !== 'failed')
      emitChanged()
    },

    emitChanged,
  }

  function announce(message: StoredMessage | undefined) {
    // A message that grows is announced when it ends.
    if (!message || message.growing || announced.has(message.messageId)) return
    announced.add(message.messageId)
    emit(message.author.kind === 'visitor' ? 'message.accepted' : 'message.received', { message })
  }

  function emitChanged() {
    emit('messages.changed', { messages: messages.all() })
    emitUnread()
  }

  function emitUnread() {
    // Nobody has read the end of a message that grows.
    const isUnread = ({ author, sequence, growing }: WidgetMessage) =>
      author.kind !== 'visitor' && !growing && sequence! > (readTo ?? sequence!)
    const count = messages.all().filter(isUnread).length
    if (count === unread) return
    unread = count
    emit('unread.changed', { count })
  }
}
