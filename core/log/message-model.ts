import type { Message as MessageOfProto } from '#proto/messaging/v1/messaging_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import type { LogEvent, Message, MessageState } from '../log-event.ts'

/**
 * Returns the fields of a message for all its readers: the history, the streams and the console
 * (contract, section 3). Every field of the proto is listed.
 */
export function publicMessage(
  { conversationId, sequence, occurredAt }: LogEvent,
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
    sequence,
    author,
    body,
    contentType,
    locale,
    state,
    createdAt: occurredAt,
    redactedAt,
    quickReplies,
  } satisfies Record<keyof Omit<ProtoFields<MessageOfProto>, 'correlationId'>, unknown>
}
