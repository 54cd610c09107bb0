import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import {
  type Agent as AgentMessage,
  type ConversationSchema,
  ConversationStatus,
  type InboxEventSchema,
  type Message,
  MessageSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import type { Conversation } from '../conversations/conversation-store.ts'
import type { ConversationSummary } from '../conversations/conversation-summaries.ts'
import { stateOf } from '../conversations/message-states.ts'
import type { MessagePage } from '../conversations/messages.ts'
import type { Agent, LogEvent } from '../log/model.ts'
import { agentOperationIn } from '../log/operation-keys.ts'

export function toMessage(event: LogEvent): Message {
  const { conversationId, sequence, occurredAt, message } = event
  const createdAt = timestampFromDate(occurredAt)
  return create(MessageSchema, { ...message, state: stateOf(event), conversationId, sequence, createdAt })
}

export function toPage({ messages, ...page }: MessagePage) {
  return { ...page, messages: messages.map(toMessage) }
}

export function toConversation(
  conversation: Conversation,
  { visitor, lastMessage }: ConversationSummary = {},
): MessageInitShape<typeof ConversationSchema> {
  const { conversationId, workspaceId, connectionId, createdAt, lastMessageAt, lastSequence, lastSessionId } =
    conversation
  const agent = conversation.assignment?.agent
  return {
    conversationId,
    workspaceId,
    connectionId,
    sessionId: lastSessionId ?? '',
    createdAt: timestampFromDate(createdAt),
    lastMessageAt: lastMessageAt && timestampFromDate(lastMessageAt),
    lastSequence: lastSequence ?? 0,
    status: conversation.status === 'closed' ? ConversationStatus.CLOSED : ConversationStatus.OPEN,
    agent,
    visitor,
    lastMessage: lastMessage && toMessage(lastMessage),
  }
}

export function toInboxEvent(event: LogEvent): MessageInitShape<typeof InboxEventSchema> {
  const { sequence, type, occurredAt, message, data } = event
  const operation = message && agentOperationIn(event.operationKey)
  return {
    sequence,
    type,
    occurredAt: timestampFromDate(occurredAt),
    ...(message && { message: toMessage(event) }),
    ...(data?.author && { author: data.author }),
    ...(data?.messageId !== undefined && { messageId: data.messageId }),
    ...(data?.state !== undefined && { state: data.state }),
    ...(operation !== undefined && { clientOperationId: operation }),
  }
}

export function fromAgent(message: AgentMessage | undefined): Agent | undefined {
  if (!message) return undefined
  const { displayName, avatarUrl } = message
  return { displayName, ...(avatarUrl === undefined ? {} : { avatarUrl }) }
}
