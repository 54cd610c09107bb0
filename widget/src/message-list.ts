import type { DeliveryStatus, WidgetMessage } from './types.ts'
import type { ServiceMessage } from './wire.ts'

/** Delivery states of the service, in order. Local states come before them. */
const progress: readonly DeliveryStatus[] = ['queued', 'sent', 'delivered', 'read']

export type MessageList = ReturnType<typeof createMessageList>

/**
 * The messages of the conversation, without duplicates. Data of a message arrives in any order: as the POST's answer,
 * the stream's event or a page of the history. It is merged by `messageId`, then by `clientOperationId` (GET /messages in section
 * 4.1 of the specification). Ordered by `sequence`; pending messages come last, oldest first.
 */
export function createMessageList() {
  let messages: WidgetMessage[] = []

  return {
    /** A new array after each change; messages that did not change stay the same objects. */
    all: (): readonly WidgetMessage[] => messages,

    byOperation: (clientOperationId: string) => messages.find((one) => one.clientOperationId === clientOperationId),

    byMessageId: (messageId: string) => messages.find((one) => one.messageId === messageId),

    /** Adds a message of this page that is still to be sent. */
    addLocal(message: Omit<WidgetMessage, 'key'> & { clientOperationId: string }): WidgetMessage {
      const local = { ...message, key: message.clientOperationId }
      messages = [...messages, local]
      return local
    },

    /** Changes the local state of an unsent message. Does nothing once the service has accepted it. */
    patchLocal(
      clientOperationId: string,
      change: Pick<WidgetMessage, 'deliveryStatus' | 'error'>,
    ): WidgetMessage | undefined {
      const current = this.byOperation(clientOperationId)
      if (!current || current.messageId) return current
      return replace(current, { ...current, ...change })
    },

    /** Merges data of the service: a whole message or, from the POST's answer, a part. */
    merge(told: Partial<ServiceMessage> & Pick<ServiceMessage, 'messageId' | 'sequence'>): WidgetMessage | undefined {
      const { state, ...known } = told
      const canonical = this.byMessageId(known.messageId)
      const unsent = messages.find((one) => !one.messageId && one.clientOperationId === known.clientOperationId)
      if (canonical && unsent) messages = messages.filter((one) => one !== canonical)
      const current = unsent ?? canonical
      const deliveryStatus = laterStatus(current?.deliveryStatus, state)
      if (current) {
        const { error: _settled, ...kept } = { ...canonical, ...current }
        return replace(current, { ...kept, ...known, deliveryStatus })
      }
      // The POST's answer alone is no message to show.
      if (!known.body || !known.author || !known.createdAt) return undefined
      const added = { ...known, deliveryStatus, key: known.messageId } as WidgetMessage
      messages = inOrder([...messages, added])
      return added
    },

    setStatus(messageId: string, status: DeliveryStatus): WidgetMessage | undefined {
      const current = this.byMessageId(messageId)
      return current && replace(current, { ...current, deliveryStatus: laterStatus(current.deliveryStatus, status) })
    },

    keepOnly(isKept: (message: WidgetMessage) => boolean) {
      messages = messages.filter(isKept)
    },
  }

  function replace(before: WidgetMessage, after: WidgetMessage): WidgetMessage {
    if (JSON.stringify(before) === JSON.stringify(after)) return before
    messages = inOrder(messages.map((one) => (one === before ? after : one)))
    return after
  }
}

/** A status only moves forward: a late answer must not undo a later event. */
function laterStatus(current: DeliveryStatus | undefined, told: DeliveryStatus | undefined): DeliveryStatus {
  if (!current || !told) return told ?? current ?? 'queued'
  const reached = progress.indexOf(current)
  if (told === 'failed') return reached >= progress.indexOf('delivered') ? current : told
  return progress.indexOf(told) >= reached ? told : current
}

function inOrder(messages: WidgetMessage[]): WidgetMessage[] {
  const place = (message: WidgetMessage) => message.sequence ?? Number.POSITIVE_INFINITY
  return messages.sort((a, b) => place(a) - place(b) || 0)
}
