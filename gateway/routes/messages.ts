import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { type Message, Presence, TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { visitorOf } from '../checks/grant.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { timeOf, toAdvisory, toUint32, withTimes } from '../core-calls/proto-values.ts'
import { sendMessage } from '../core-calls/send-batcher.ts'
import { invalid } from '../errors.ts'
import { streamsOf } from '../events/event-streams.ts'
import { presenceOf } from '../events/presence-relay.ts'
import {
  EventsQuery,
  HistoryAnswer,
  HistoryQuery,
  type MessageAnswer,
  PresenceBody,
  RatingAnswer,
  RatingBody,
  ReceiptBody,
  RetryParams,
  SendMessageAnswer,
  SendMessageBody,
  StopAnswer,
  StopParams,
  TypingBody,
} from '../schemas/messages.ts'
import operations from './operations.json' with { type: 'json' }
import { answerOnce, callOnce, nothing, operation, report } from './sessions.ts'

const typingStates = { started: TypingState.STARTED, stopped: TypingState.STOPPED }
const presences = { here: Presence.HERE, away: Presence.AWAY }
const EVENT_ID_MAX_LENGTH = 256
const sends = {
  scoped: true,
  idempotent: true,
  keyField: 'clientOperationId',
  rate: 'sends',
  errors: ['ConsentRequired'],
} as const

/**
 * POST and GET /messages, POST /messages/{clientOperationId}/retry, /messages/{messageId}/stop,
 * /messages/receipts, /ratings, /typing, /presence; GET /events: the SSE stream (specification, section 6.1)
 */
export const messageRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { gateway } = app
  const { messaging, sessions } = coreOf(gateway)

  app.post(
    '/messages',
    {
      schema: { ...operations.sendMessage, body: SendMessageBody, response: { 202: SendMessageAnswer } },
      config: sends,
    },
    async (request, reply) => reply.code(202).send(await send(reply, request.body)),
  )

  app.post(
    '/messages/:clientOperationId/retry',
    {
      schema: {
        ...operations.retryMessage,
        params: RetryParams,
        body: SendMessageBody,
        response: { 202: SendMessageAnswer },
      },
      config: { ...sends, advertisedBy: 'messageRetryRoute' },
    },
    async (request, reply) => {
      if (request.params.clientOperationId !== request.body.clientOperationId)
        throw invalid('/clientOperationId', 'const')
      return reply.code(202).send(await send(reply, request.body, true))
    },
  )

  app.get(
    '/messages',
    {
      schema: { ...operations.listMessages, querystring: HistoryQuery, response: { 200: HistoryAnswer } },
      config: { scoped: true, rate: 'calls', readsPages: true },
    },
    async (request) => {
      const { credentials } = visitorOf(request)
      const { afterSequence, beforeSequence, limit } = request.query
      const page = await messaging.listVisitorMessages(
        { credentials, afterSequence: toUint32(afterSequence), beforeSequence: toUint32(beforeSequence), limit },
        callOptions(request),
      )
      return { ...page, messages: page.messages.map(toAnswer) }
    },
  )

  app.post(
    '/messages/:messageId/stop',
    {
      schema: { ...operations.stopAnswer, params: StopParams, response: { 202: StopAnswer } },
      config: { ...operation, advertisedBy: 'stopAnswer', errors: ['NotFound'] },
    },
    async (request, reply) => reply.code(202).send(await callOnce(reply, messaging.stopAnswer, request.params)),
  )

  // A receipt never moves a state back, so this route takes no `Idempotency-Key`.
  app.post(
    '/messages/receipts',
    {
      schema: {
        ...operations.reportReceipt,
        body: ReceiptBody,
        response: nothing('The states are stored.'),
      },
      config: { scoped: true, advertisedBy: 'receipts', rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const { upToSequence, state } = request.body
      await messaging.reportReceipt({ credentials, upToSequence: toUint32(upToSequence)!, state }, callOptions(request))
      return reply.code(204).send(null)
    },
  )

  // A typing report is naturally idempotent, so an `Idempotency-Key` is only checked for its form.
  app.post(
    '/typing',
    {
      schema: {
        ...operations.setTyping,
        body: TypingBody,
        response: nothing('Operators are notified.'),
      },
      config: { ...report, advertisedBy: 'typing' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      await messaging.setVisitorTyping({ credentials, state: typingStates[request.body.state] }, callOptions(request))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/ratings',
    {
      schema: { ...operations.rateConversation, body: RatingBody, response: { 201: RatingAnswer } },
      config: {
        ...operation,
        advertisedBy: 'rating',
        errors: ['ConsentRequired', 'RatingNotRequested', 'RatingAlreadyGiven'],
      },
    },
    async (request, reply) =>
      reply.code(201).send(withTimes(await callOnce(reply, messaging.rateConversation, request.body))),
  )

  // A report replaces the tab's earlier report, so this route takes no `Idempotency-Key`.
  app.post(
    '/presence',
    {
      schema: {
        ...operations.reportPresence,
        body: PresenceBody,
        response: nothing('Operators are notified.'),
      },
      config: { scoped: true, advertisedBy: 'presence', rate: 'presence', errors: ['ConsentRequired'] },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const { tab, state } = request.body
      const { conversationId, workspaceId } = await sessions.authorizeGrant(
        { credentials, reportsHere: state === 'here' },
        callOptions(request),
      )
      presenceOf(gateway).report({ conversationId, workspaceId, tab, presence: presences[state] })
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/events',
    {
      schema: { ...operations.openEvents, querystring: EventsQuery },
      config: { scoped: true, rate: 'calls', headers: ['Last-Event-ID'], stream: true },
      exposeHeadRoute: false,
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const afterSequence = toUint32(request.query.afterSequence)
      const start = { afterSequence, lastEventId: lastEventId(request.headers) }
      await streamsOf(gateway).open(reply, { credentials, start, correlationId: request.id })
      return reply
    },
  )
}

async function send(reply: FastifyReply, body: SendMessageBody, retryRoute = false): Promise<SendMessageAnswer> {
  const { id: correlationId, server } = reply.request
  const { credentials } = visitorOf(reply.request)
  const message = { ...body, ...toAdvisory(body), credentials, retryRoute, correlationId }
  const accepted = answerOnce(reply, await sendMessage(server.gateway, message))
  return { ...accepted, acceptedAt: timeOf(accepted.acceptedAt) }
}

function toAnswer({ quickReplies, ...message }: Message): MessageAnswer {
  return { ...withTimes(message), author: message.author!, ...(quickReplies.length > 0 && { quickReplies }) }
}

/** Replaces an id that is too long by `invalid`. A core answers it with the event `replay.reset.required`. */
function lastEventId(headers: Record<string, string | string[] | undefined>) {
  const given = headers['last-event-id']
  if (given === undefined) return undefined
  return typeof given === 'string' && given.length <= EVENT_ID_MAX_LENGTH ? given : 'invalid'
}
