import type { Message as MessageOfProto } from '#proto/messaging/v1/messaging_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import type { LogEvent, Message, MessageState } from '../log-event.ts'

/**
 * Returns the fields of a message for all its readers: the history, the streams and the console
 * (contract, section 3). Every field of the proto is listed.
 */
export function publicMessage(
  { conversationId, sequence, occurredAt, messageSequence, begunAt, growth }: LogEvent,
  message: Message,
  state: MessageState,
) {
  const { messageId, clientOperationId, sessionId, author, body, contentType, locale, redactedAt, quickReplies } =
    message
  return {
    messageId,
    clientOperationId,
    sessionId,
    conversationId,
    sequence: messageSequence ?? sequence,
    author,
    body,
    contentType,
    locale,
    state,
    createdAt: begunAt ?? occurredAt,
    redactedAt,
    quickReplies,
    growing: (growth?.state === 'growing' && !redactedAt) || undefined,
    ended: message.ended,
  } satisfies Record<keyof Omit<ProtoFields<MessageOfProto>, 'correlationId'>, unknown>
}

/** What a withdrawal does with each field of a stored message (contract, section 7). A new field is decided here. */
const whenWithdrawn = {
  messageId: 'stays',
  clientOperationId: 'stays',
  sessionId: 'stays',
  correlationId: 'stays',
  author: 'stays',
  contentType: 'stays',
  locale: 'stays',
  state: 'stays',
  body: 'emptied',
  quickReplies: 'removed',
  ended: 'removed',
  redactedAt: 'set',
} as const satisfies Record<keyof Message, 'stays' | 'emptied' | 'removed' | 'set'>

const fieldsThatAre = (fate: (typeof whenWithdrawn)[keyof Message]) =>
  Object.entries(whenWithdrawn).flatMap(([field, what]) => (what === fate ? [`message.${field}`] : []))

export const withdrawal = (at: Date) => ({
  $set: {
    ...Object.fromEntries(fieldsThatAre('emptied').map((field) => [field, ''])),
    ...Object.fromEntries(fieldsThatAre('set').map((field) => [field, at])),
  },
  $unset: Object.fromEntries(fieldsThatAre('removed').map((field) => [field, '' as const])),
})
