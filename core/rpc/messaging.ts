import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  type AcceptedMessage,
  GetReportResponseSchema,
  MessagingService,
  type VisitorMessage,
  type VisitorMessageResultSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { validCorrelationId } from '../../contract/correlation-id.ts'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { handOverIfAsked } from '../conversations/bots.ts'
import { stopAnswer } from '../conversations/growing-messages.ts'
import { inboxOf } from '../conversations/inbox.ts'
import {
  listMessages,
  listMessagesForVisitor,
  sendAsAgent,
  sendAsVisitor,
  type VisitorSend,
} from '../conversations/messages.ts'
import { giveRating } from '../conversations/ratings.ts'
import type { Core } from '../core.ts'
import type { Appended } from '../log/event-log.ts'
import { readReport } from '../reports/reports.ts'
import { issueIf, validate } from '../rules.ts'
import { callerOf, callerWorkspace, requiredWorkspace } from '../transport/caller.ts'
import { correlationIdOf, toErrorInfo, toServiceError } from '../transport/connect-errors.ts'
import { conversationMethods } from './conversations.ts'
import { fromAgent, toMessage, toPage, toVisitorsPage } from './messaging-values.ts'
import { observeSends } from './observed-sends.ts'
import { fromCredentials, fromPageContext } from './visitor.ts'
import { watchEvents } from './watch-events.ts'

const maxSends = 512

export function messagingService(router: ConnectRouter, core: Core) {
  const { logger } = core
  const observed = observeSends(core)

  async function sendOne(message: VisitorMessage): Promise<MessageInitShape<typeof VisitorMessageResultSchema>> {
    try {
      const send = fromVisitorMessage(message)
      const sent = await observed('visitor', send.correlationId, sendAsVisitor(core, send))
      await handOverIfAsked(core, sent.event)
      return { outcome: { case: 'accepted', value: toAccepted(sent) } }
    } catch (error) {
      const failure = toServiceError(error)
      if (failure.code === ErrorCode.INTERNAL_ERROR)
        logger.error(
          { type: (failure.cause as Error | undefined)?.name },
          'sending a visitor message failed with an internal error',
        )
      return { outcome: { case: 'error', value: toErrorInfo(failure) } }
    }
  }

  router.service(MessagingService, {
    async sendVisitorMessages({ messages: sends }) {
      validate(
        issueIf(sends.length === 0, '/messages', 'minItems'),
        issueIf(sends.length > maxSends, '/messages', 'maxItems'),
      )
      return { results: await Promise.all(sends.map(sendOne)) }
    },

    async listVisitorMessages({ credentials, ...query }) {
      return toVisitorsPage(await listMessagesForVisitor(core, fromCredentials(credentials), query))
    },

    async rateConversation({ credentials, ...rating }) {
      const { event, replayed } = await giveRating(core, { credentials: fromCredentials(credentials), ...rating })
      const { sequence, occurredAt, data } = event
      return { sequence, score: data?.score ?? 0, ratedAt: timestampFromDate(occurredAt), replayed }
    },

    stopAnswer: ({ credentials, ...stop }) => stopAnswer(core, { credentials: fromCredentials(credentials), ...stop }),

    async sendAgentMessage({ conversationId, clientOperationId, body, agent }, context) {
      const named = fromAgent(agent)
      const correlationId = correlationIdOf(context.requestHeader)
      const { subject: sentBy, workspaceId } = callerOf(context)
      const send = { conversationId, clientOperationId, body, agent: named, correlationId, sentBy }
      const sending = sendAsAgent(core, send, workspaceId)
      const { event, replayed } = await observed('agent', correlationId, sending)
      return { message: toMessage(event), replayed }
    },

    async listMessages({ conversationId, peek, ...query }, context) {
      return toPage(await listMessages(core, conversationId, { ...query, peek }, callerWorkspace(context)))
    },

    ...conversationMethods(core),

    async *getReport({ workspaceId, firstDay, days, timeZone }, context) {
      const query = { workspaceId: requiredWorkspace(context, workspaceId), firstDay, days, timeZone }
      // The report must include the messages that this process has accepted.
      await inboxOf(core).noted()
      for await (const part of readReport(core, query, context.signal)) {
        const isReport = 'total' in part
        yield create(GetReportResponseSchema, {
          frame: isReport ? { case: 'report', value: part } : { case: 'progress', value: part },
        })
      }
    },

    watchEvents: (commands, { signal }) => watchEvents(core, commands, signal),
  })
}

function fromVisitorMessage(message: VisitorMessage): VisitorSend {
  const { $typeName: _, $unknown: __, credentials, pageContext, ...send } = message
  return {
    ...send,
    credentials: fromCredentials(credentials),
    pageContext: fromPageContext(pageContext),
    correlationId: validCorrelationId(send.correlationId),
  }
}

function toAccepted({ event, replayed }: Appended) {
  const { messageId, clientOperationId = '', sessionId = '' } = event.message!
  const { conversationId, sequence, occurredAt } = event
  const acceptedAt = timestampFromDate(occurredAt)
  const state = 'queued'
  return {
    clientOperationId,
    messageId,
    sessionId,
    conversationId,
    sequence,
    state,
    acceptedAt,
    replayed,
  } satisfies Record<keyof ProtoFields<AcceptedMessage>, unknown>
}
