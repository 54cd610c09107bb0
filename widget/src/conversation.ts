import type { Emitter } from './events.ts'
import { createMessageList } from './message-list.ts'
import type { OutboxEntry } from './outbox.ts'
import type { DeliveryStatus, StreamEvent, WidgetErrorDetail, WidgetEventMap, WidgetMessage } from './types.ts'
import type { AcceptedMessage, ServiceMessage } from './wire.ts'

/** Events whose data goes to the application as it came. */
const passedOn = /^(typing|agent|conv|session\.i)/

/** The loaded messages and their events. Each event is emitted once, whether the stream, the history or an answer came first. */
export function createConversation({ emit }: Pick<Emitter<WidgetEventMap>, 'emit'>) {
  const messages = createMessageList()
  const announced = new Set<string>()
  let unread = 0
  let readTo: number | undefined

  return {
    messages,

    /** Adds an own message that is pending or has failed. */
    addOwn({ input, createdAt, error }: OutboxEntry): WidgetMessage {
      const { pageContext: _notShown, ...shown } = input
      const deliveryStatus = error ? 'failed' : 'pending'
      const message = messages.addLocal({ ...shown, author: { kind: 'visitor' }, createdAt, deliveryStatus, error })
      tellChanged()
      return message
    },

    unread: () => unread,

    /** Messages up to this sequence are read. */
    setReadTo(sequence: number) {
      readTo = sequence
      tellUnread()
    },

    lastSequence: () => messages.all().findLast(({ sequence }) => sequence)?.sequence ?? 0,

    /** @param attempt which attempt is the next one, if there is one */
    setOwnStatus(
      clientOperationId: string,
      deliveryStatus: DeliveryStatus,
      error?: WidgetErrorDetail,
      attempt?: number,
    ) {
      const message = messages.patchLocal(clientOperationId, { deliveryStatus, error })
      tellChanged()
      if (!message || !error) return
      if (attempt) emit('message.retrying', { message, attempt })
      else emit('message.retry.exhausted', { message, error })
    },

    /** The answer of POST /messages, which may come after the event of the same message. */
    takeAnswer(answer: AcceptedMessage) {
      const { acceptedAt, ...known } = answer
      announce(messages.merge({ ...known, createdAt: acceptedAt }))
      tellChanged()
    },

    /** Takes a message of the history. Emits its event if the stream missed it. */
    take(message: ServiceMessage, missed: boolean) {
      const { clientOperationId } = message
      const own = clientOperationId && messages.byOperation(clientOperationId)
      const isNews = missed || (own && !own.messageId)
      const merged = messages.merge(message)
      if (isNews) announce(merged)
    },

    takeEvent(event: StreamEvent, onOwn: (clientOperationId: string) => void) {
      const { type, data } = event
      if (type === 'message.accepted' || type === 'message.received') {
        const message = data.message as ServiceMessage | undefined
        if (typeof message?.messageId !== 'string') return
        const merged = messages.merge(message)
        if (message.clientOperationId) onOwn(message.clientOperationId)
        announce(merged)
        tellChanged()
      } else if (type === 'message.state.changed') {
        const message = messages.setStatus(String(data.messageId), data.state as DeliveryStatus)
        if (message) emit(type, { message })
        tellChanged()
      } else if (passedOn.test(type)) {
        emit(type as 'session.identified', data as Record<string, never>)
      }
      // Other types are information for newer packages: compatible, and ignored.
    },

    /** Removes all messages except pending ones, or all. */
    clear(all = false) {
      messages.keepOnly(({ messageId, deliveryStatus }) => !all && !messageId && deliveryStatus !== 'failed')
      tellChanged()
    },

    tellChanged,
  }

  function announce(message: WidgetMessage | undefined) {
    if (!message?.messageId || announced.has(message.messageId)) return
    announced.add(message.messageId)
    emit(message.author.kind === 'visitor' ? 'message.accepted' : 'message.received', { message })
  }

  function tellChanged() {
    emit('messages.changed', { messages: messages.all() })
    tellUnread()
  }

  function tellUnread() {
    const isUnread = ({ author, sequence }: WidgetMessage) =>
      author.kind !== 'visitor' && sequence! > (readTo ?? sequence!)
    const count = messages.all().filter(isUnread).length
    if (count === unread) return
    unread = count
    emit('unread.changed', { count })
  }
}
