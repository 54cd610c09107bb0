import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import {
  type AcceptedMessage,
  GetReportResponseSchema,
  MessagingService,
  type VisitorMessage,
  type VisitorMessageResultSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { validCorrelationId } from '../../contract/correlation-id.ts'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { appendAsBot, handOverIfAsked, requestHuman, sendAsBot } from '../conversations/bots.ts'
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
import { setTypingOfBot } from '../conversations/typing.ts'
import type { Core } from '../core.ts'
import type { Appended } from '../log/event-log.ts'
import { readReport } from '../reports/reports.ts'
import { issueIf, validate } from '../rules.ts'
import { callerOf, callerWorkspace, requiredWorkspace } from '../transport/caller.ts'
import { correlationIdOf, toErrorInfo, toServiceError } from '../transport/connect-errors.ts'
import { conversationMethods, fromTypingState } from './conversations.ts'
import { fromAgent, toMessage, toPage, toVisitorsMessage } from './messaging-values.ts'
import { emptyAfter, fromPageContext, ofVisitor } from './proto-values.ts'
import { watchEvents } from './watch-events.ts'

const maxSends = 512
const slowMs = 1_000

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
      if (failure.code === 'InternalError')
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

    async listVisitorMessages(request) {
      const { credentials, ...query } = ofVisitor(request)
      return toPage(await listMessagesForVisitor(core, credentials, query), toVisitorsMessage)
    },

    async rateConversation(request) {
      const { event, replayed } = await giveRating(core, ofVisitor(request))
      const { sequence, occurredAt, data } = event
      return { sequence, score: data?.score ?? 0, ratedAt: timestampFromDate(occurredAt), replayed }
    },

    stopAnswer: (request) => stopAnswer(core, ofVisitor(request)),

    async sendAgentMessage({ conversationId, clientOperationId, body, agent }, context) {
      const correlationId = correlationIdOf(context.requestHeader)
      const { subject: sentBy, workspaceId } = callerOf(context)
      const send = { conversationId, clientOperationId, body, agent: fromAgent(agent), correlationId, sentBy }
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
        const frame =
          'total' in part ? { case: 'report' as const, value: part } : { case: 'progress' as const, value: part }
        yield create(GetReportResponseSchema, { frame })
      }
    },

    watchEvents: (commands, { signal }) => watchEvents(core, commands, signal),
  })
}

export function botService(router: ConnectRouter, core: Core) {
  const observed = observeSends(core)
  const unnamed = { displayName: '' }

  router.service(BotService, {
    async sendBotMessage({ conversationId, clientOperationId, body, bot, quickReplies }, context) {
      const send = { conversationId, clientOperationId, body, bot: fromAgent(bot) ?? unnamed, quickReplies }
      const correlationId = correlationIdOf(context.requestHeader)
      const sending = sendAsBot(core, send, callerWorkspace(context))
      const { event, replayed } = await observed('bot', correlationId, sending)
      return { message: toMessage(event), replayed }
    },

    appendBotMessage: ({ bot, ...part }, context) =>
      appendAsBot(core, { ...part, bot: fromAgent(bot) ?? unnamed }, callerWorkspace(context)),

    setBotTyping({ conversationId, state, bot }, context) {
      const request = { conversationId, state: fromTypingState(state), bot: fromAgent(bot) ?? unnamed }
      return emptyAfter(setTypingOfBot(core, request, callerWorkspace(context)))
    },

    async requestHuman({ conversationId, clientOperationId, bot, summary }, context) {
      const request = { conversationId, clientOperationId, bot: fromAgent(bot) ?? unnamed, summary }
      return { replayed: !(await requestHuman(core, request, callerWorkspace(context))) }
    },
  })
}

/** Counts a send by its author and result. Logs one of a second or longer with its correlation id. */
export function observeSends({ metrics, logger }: Pick<Core, 'metrics' | 'logger'>) {
  return async (author: 'visitor' | 'agent' | 'bot', correlationId: string | undefined, sending: Promise<Appended>) => {
    const began = performance.now()
    let result: string | undefined
    try {
      const sent = await sending
      result = sent.replayed ? 'replayed' : 'accepted'
      return sent
    } catch (error) {
      result = toErrorInfo(error).code
      throw error
    } finally {
      metrics.sends.inc({ author, result })
      const durationMs = Math.round(performance.now() - began)
      if (durationMs >= slowMs) logger.warn({ correlationId, author, result, durationMs }, 'slow send')
    }
  }
}

function fromVisitorMessage(message: VisitorMessage): VisitorSend {
  const { $typeName: _, $unknown: __, ...send } = ofVisitor(message)
  const { pageContext, correlationId } = send
  return { ...send, pageContext: fromPageContext(pageContext), correlationId: validCorrelationId(correlationId) }
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
