import { isEarlier, stateRank, withPart } from '../../../browser/chat/messages.ts'
import type { ServiceMessage } from '../vocabulary/gen/wire.ts'
import type { DeliveryStatus, StoredMessage, WidgetMessage } from '../vocabulary/types.ts'

export type MessageList = ReturnType<typeof createMessageList>

/**
 * The messages of the conversation, without duplicates. Responses, events and history pages arrive
 * in any order. Their messages are merged by `messageId`, then by `clientOperationId` (GET
 * /messages in section 4.1 of the specification). The list is sorted by `sequence`; unsent messages
 * are last, oldest first.
 */
export function createMessageList() {
  let messages: WidgetMessage[] = []

  return {
    /** Each change creates a new array with the same objects for unchanged messages. */
    all: (): readonly WidgetMessage[] => messages,
    byOperation: (clientOperationId: string) => messages.find((one) => one.clientOperationId === clientOperationId),
    byMessageId: (messageId: string) => messages.find((one) => one.messageId === messageId),

    addLocal(message: Omit<WidgetMessage, 'key'> & { clientOperationId: string }): WidgetMessage {
      const local = { ...message, key: message.clientOperationId }
      messages = [...messages, local]
      return local
    },

    /** Changes an unsent message. Does nothing if the service has accepted it. */
    patchLocal(
      clientOperationId: string,
      change: Pick<WidgetMessage, 'deliveryStatus' | 'error' | 'failureVersion'>,
    ): WidgetMessage | undefined {
      const current = this.byOperation(clientOperationId)
      if (!current || current.messageId) return current
      return replace(current, { ...current, ...change })
    },

    /** Merges a message of the service. The answer to POST /messages has only some of the fields. */
    merge(
      received: Partial<ServiceMessage> & Pick<ServiceMessage, 'messageId' | 'conversationId' | 'sequence'>,
    ): StoredMessage | undefined {
      const { state, ...known } = received
      const canonical = this.byMessageId(known.messageId)
      const unsent = messages.find((one) => !one.messageId && one.clientOperationId === known.clientOperationId)
      if (canonical && unsent) messages = messages.filter((one) => one !== canonical)
      // This message was read before the one that is shown.
      if (canonical && isEarlier(known, canonical)) return canonical as StoredMessage
      const current = unsent ?? canonical
      const deliveryStatus = laterStatus(current?.deliveryStatus, state)
      if (current) {
        return replace(current, {
          ...canonical,
          ...current,
          ...known,
          growing: known.growing,
          error: undefined,
          deliveryStatus,
        })
      }
      // A response to POST /messages does not contain enough fields to add a message.
      if (known.body === undefined || !known.author || !known.createdAt) return undefined
      const added = withFailures({ ...known, deliveryStatus, key: known.messageId } as StoredMessage)
      messages = inOrder([...messages, added])
      return added
    },

    setStatus(messageId: string, status: DeliveryStatus): StoredMessage | undefined {
      const current = this.byMessageId(messageId) as StoredMessage | undefined
      return current && replace(current, { ...current, deliveryStatus: laterStatus(current.deliveryStatus, status) })
    },

    /** `offset` counts code points. Returns false if an earlier part is missing. */
    grow(messageId: string, offset: number, text: string): boolean {
      const current = this.byMessageId(messageId)
      if (!current?.growing) return true
      const body = withPart(current.body, offset, text)
      if (body === undefined) return false
      replace(current, { ...current, body })
      return true
    },

    redact(messageId: string, redactedAt: string): StoredMessage | undefined {
      const current = this.byMessageId(messageId) as StoredMessage | undefined
      return current && replace(current, { ...current, body: '', redactedAt })
    },

    keepOnly(isIncluded: (message: WidgetMessage) => boolean) {
      messages = messages.filter(isIncluded)
    },
  }

  function replace<Kind extends WidgetMessage>(before: WidgetMessage, after: Kind): Kind {
    if (JSON.stringify(before) === JSON.stringify(after)) return before as Kind
    const counted = withFailures(after, before)
    messages = inOrder(messages.map((one) => (one === before ? counted : one)))
    return counted
  }
}

/** Counts a failure that the service has reported. The outbox counts failures of unsent messages. */
function withFailures<Kind extends WidgetMessage>(after: Kind, before?: WidgetMessage): Kind {
  const isNew = after.messageId && after.deliveryStatus === 'failed' && before?.deliveryStatus !== 'failed'
  return isNew ? { ...after, failureVersion: (after.failureVersion ?? 0) + 1 } : after
}

/** Returns the later of two states. `failed` replaces all but `delivered` and `read`. */
function laterStatus(current: DeliveryStatus | undefined, reported: DeliveryStatus | undefined): DeliveryStatus {
  if (!current || !reported) return reported ?? current ?? 'queued'
  // The states `pending` and `retrying` come before those of the service.
  const reached = stateRank(current)
  if (reported === 'failed') return reached >= stateRank('delivered') ? current : reported
  return stateRank(reported) >= reached ? reported : current
}

function inOrder(messages: WidgetMessage[]): WidgetMessage[] {
  const place = (message: WidgetMessage) => message.sequence ?? Number.POSITIVE_INFINITY
  return messages.sort((a, b) => place(a) - place(b) || 0)
}
