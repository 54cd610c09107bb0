import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  type ConversationSchema,
  type Message,
  MessageSchema,
  MessagingService,
  type VisitorMessage,
  type VisitorMessageResultSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import type { LogEvent } from '../log-events.ts'
import type { MessagePage, PageQuery, Sent, VisitorSend } from '../messages.ts'
import type { Conversation } from '../store/conversations.ts'
import { callerOf, workspaceOf } from './caller.ts'
import { toErrorInfo, toServiceError } from './connect-errors.ts'
import { fromCredentials, fromPageContext } from './visitor.ts'
import { watchEvents } from './watch-events.ts'

const maxSends = 512

/** `service.messaging.v1.MessagingService` over the domain. */
export function messagingService(router: ConnectRouter, core: CoreContext): void {
  const { messages, inbox, logger } = core

  async function sendOne(message: VisitorMessage): Promise<MessageInitShape<typeof VisitorMessageResultSchema>> {
    try {
      return {
        outcome: { case: 'accepted', value: toAccepted(await messages.sendAsVisitor(fromVisitorMessage(message))) },
      }
    } catch (error) {
      const failure = toServiceError(error)
      if (failure.code === ErrorCode.INTERNAL_ERROR)
        logger.error({ type: (failure.cause as Error | undefined)?.name }, 'send failed')
      return { outcome: { case: 'error', value: toErrorInfo(failure) } }
    }
  }

  router.service(MessagingService, {
    async sendVisitorMessages({ messages: sends }) {
      if (sends.length === 0 || sends.length > maxSends) {
        const rule = sends.length === 0 ? 'minItems' : 'maxItems'
        throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/messages', rule }] })
      }
      return { results: await Promise.all(sends.map(sendOne)) }
    },

    async listVisitorMessages({ credentials, ...query }) {
      return toPage(await messages.listForVisitor(fromCredentials(credentials), fromQuery(query)))
    },

    async sendAgentMessage({ conversationId, clientOperationId, body, agent }, context) {
      const { displayName = '', avatarUrl } = agent ?? {}
      const { event, replayed } = await messages.sendAsAgent(
        {
          conversationId,
          clientOperationId,
          body,
          agent: { displayName, ...(avatarUrl === undefined ? {} : { avatarUrl }) },
        },
        callerOf(context).workspaceId,
      )
      return { message: toMessage(event), replayed }
    },

    async listMessages({ conversationId, ...query }, context) {
      return toPage(await messages.list(conversationId, fromQuery(query), callerOf(context).workspaceId))
    },

    async listConversations({ workspaceId, limit, pageToken }, context) {
      const workspace = workspaceOf(context, workspaceId)
      const { conversations, nextPageToken } = await inbox.list({
        ...(workspace === undefined ? {} : { workspaceId: workspace }),
        ...(limit === undefined ? {} : { limit }),
        ...(pageToken === undefined ? {} : { pageToken }),
      })
      return { conversations: conversations.map(toConversation), nextPageToken }
    },

    watchEvents: (commands, { signal }) => watchEvents(core, commands, signal),
  })
}

function fromVisitorMessage({
  credentials,
  clientOperationId,
  body,
  contentType,
  locale,
  pageContext,
}: VisitorMessage): VisitorSend {
  const page = fromPageContext(pageContext)
  return {
    credentials: fromCredentials(credentials),
    clientOperationId,
    body,
    contentType,
    ...(locale === undefined ? {} : { locale }),
    ...(page && { pageContext: page }),
  }
}

function fromQuery({ afterSequence, beforeSequence, limit }: PageQuery): PageQuery {
  return {
    ...(afterSequence === undefined ? {} : { afterSequence }),
    ...(beforeSequence === undefined ? {} : { beforeSequence }),
    ...(limit === undefined ? {} : { limit }),
  }
}

function toAccepted({ event, replayed }: Sent) {
  const { messageId, clientOperationId = '', sessionId = '' } = event.message!
  const { conversationId, sequence, occurredAt } = event
  const acceptedAt = timestampFromDate(occurredAt)
  return { clientOperationId, messageId, sessionId, conversationId, sequence, state: 'queued', acceptedAt, replayed }
}

function toMessage({ conversationId, sequence, occurredAt, message }: LogEvent): Message {
  return create(MessageSchema, { ...message, conversationId, sequence, createdAt: timestampFromDate(occurredAt) })
}

function toPage({ messages, ...page }: MessagePage) {
  return { ...page, messages: messages.map(toMessage) }
}

function toConversation(conversation: Conversation): MessageInitShape<typeof ConversationSchema> {
  const { conversationId, workspaceId, connectionId, createdAt, lastMessageAt, lastSequence, lastSessionId } =
    conversation
  return {
    conversationId,
    workspaceId,
    connectionId,
    sessionId: lastSessionId ?? '',
    createdAt: timestampFromDate(createdAt),
    ...(lastMessageAt && { lastMessageAt: timestampFromDate(lastMessageAt) }),
    lastSequence: lastSequence ?? 0,
  }
}
