import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { type Message, Presence, TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { operationOf, visitorOf } from '../checks/grant.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { timeOf, toAdvisory, toUint32 } from '../core-calls/proto-values.ts'
import { sendMessage } from '../core-calls/send-batcher.ts'
import { GatewayError } from '../errors.ts'
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
import { markReplayed, operation } from './sessions.ts'

const typingStates = { started: TypingState.STARTED, stopped: TypingState.STOPPED }
const presences = { here: Presence.HERE, away: Presence.AWAY }
const EVENT_ID_MAX_LENGTH = 256

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
      schema: {
        operationId: 'sendMessage',
        summary: 'Send a message',
        description:
          'Idempotent: a repeat with the same input gets the first answer again. When it is answered, the message is stored durably.',
        tags: ['Messages'],
        body: SendMessageBody,
        response: { 202: SendMessageAnswer },
      },
      config: {
        scoped: true,
        idempotent: true,
        keyField: 'clientOperationId',
        rate: 'sends',
        errors: ['ConsentRequired'],
      },
    },
    async (request, reply) => {
      return reply.code(202).send(await send(reply, request.body))
    },
  )

  app.post(
    '/messages/:clientOperationId/retry',
    {
      schema: {
        operationId: 'retryMessage',
        summary: 'Send a message again by its operation id',
        description:
          'The same as a repeat of `POST /messages`, for installations with `messageRetryRoute`: returns the first answer, or sends the message now.',
        tags: ['Messages'],
        params: RetryParams,
        body: SendMessageBody,
        response: { 202: SendMessageAnswer },
      },
      config: {
        scoped: true,
        advertisedBy: 'messageRetryRoute',
        errors: ['ConsentRequired'],
        idempotent: true,
        keyField: 'clientOperationId',
        rate: 'sends',
      },
    },
    async (request, reply) => {
      if (request.params.clientOperationId !== request.body.clientOperationId) {
        throw new GatewayError('ValidationFailed', { issues: [{ path: '/clientOperationId', rule: 'const' }] })
      }
      return reply.code(202).send(await send(reply, request.body, true))
    },
  )

  app.get(
    '/messages',
    {
      schema: {
        operationId: 'listMessages',
        summary: 'Read the history',
        description:
          'A page of the conversation, the oldest message first: after `afterSequence`, just before `beforeSequence`, or from the start. Not both. It ends at `limit` messages or at 256 KiB; `hasMore` says that there is more.',
        tags: ['Messages'],
        querystring: HistoryQuery,
        response: { 200: HistoryAnswer },
      },
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
      schema: {
        operationId: 'stopAnswer',
        summary: 'Stop an answer that grows',
        description:
          'Needs the capability `stopAnswer`. No text that the bot adds later is shown. An answer that has ended before keeps its state.',
        tags: ['Messages'],
        params: StopParams,
        response: { 202: StopAnswer },
      },
      config: { ...operation, advertisedBy: 'stopAnswer', errors: ['NotFound'] },
    },
    async (request, reply) => {
      const { replayed, messageId, state, sequence } = await messaging.stopAnswer(
        { ...operationOf(request), ...request.params },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return reply.code(202).send({ messageId, state, sequence })
    },
  )

  // A receipt never moves a state back, so this route takes no `Idempotency-Key`.
  app.post(
    '/messages/receipts',
    {
      schema: {
        operationId: 'reportReceipt',
        summary: 'Report received or shown messages',
        description:
          "Needs the capability `receipts`. Advances the agents' messages up to a sequence to `delivered` or `read`. A state never goes back, so a repeat changes nothing. Report the latest message only.",
        tags: ['Messages'],
        body: ReceiptBody,
        response: { 204: Type.Null({ description: 'The states are stored.' }) },
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
        operationId: 'setTyping',
        summary: 'Report that the visitor types',
        description:
          'Needs the capability `typing`. A start expires after a while and with the next message, so repeat it while the visitor types.',
        tags: ['Messages'],
        body: TypingBody,
        response: { 204: Type.Null({ description: 'Operators are notified.' }) },
      },
      config: {
        scoped: true,
        advertisedBy: 'typing',
        idempotent: 'optional',
        rate: 'calls',
        errors: ['ConsentRequired'],
      },
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
      schema: {
        operationId: 'rateConversation',
        summary: 'Rate the closed conversation',
        description:
          'Needs the capability `rating`. Accepted once after each closing that asked for a rating, until the conversation is reopened. A repeat with the same key gets the first answer again.',
        tags: ['Messages'],
        body: RatingBody,
        response: { 201: RatingAnswer },
      },
      config: {
        ...operation,
        advertisedBy: 'rating',
        errors: ['ConsentRequired', 'RatingNotRequested', 'RatingAlreadyGiven'],
      },
    },
    async (request, reply) => {
      const { ratedAt, replayed, score, sequence } = await messaging.rateConversation(
        { ...operationOf(request), ...request.body },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return reply.code(201).send({ score, sequence, ratedAt: timeOf(ratedAt) })
    },
  )

  // A report replaces the tab's earlier report, so this route takes no `Idempotency-Key`.
  app.post(
    '/presence',
    {
      schema: {
        operationId: 'reportPresence',
        summary: 'Report whether the visitor sees the chat',
        description:
          'Needs the capability `presence`. `here` while this tab shows the chat: repeat it every 2 seconds, because it expires after 4. `away` when the tab no longer shows the chat. Operators see it; nothing is stored.',
        tags: ['Events'],
        body: PresenceBody,
        response: { 204: Type.Null({ description: 'Operators are notified.' }) },
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
      schema: {
        operationId: 'openEvents',
        summary: 'Open or resume the event stream',
        description:
          'Server-sent events. The stream begins after the greater of `Last-Event-ID` and `afterSequence`; with neither, at the present end. A position that cannot be resumed from gets one `replay.reset.required`, and the stream ends.',
        tags: ['Events'],
        querystring: EventsQuery,
      },
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
  const accepted = await sendMessage(server.gateway, message)
  markReplayed(reply, accepted.replayed)
  return { ...accepted, acceptedAt: timeOf(accepted.acceptedAt) }
}

function toAnswer({ quickReplies, ...message }: Message): MessageAnswer {
  const { author, createdAt, redactedAt } = message
  return {
    ...message,
    author: author!,
    createdAt: timeOf(createdAt),
    redactedAt: redactedAt && timeOf(redactedAt),
    ...(quickReplies.length > 0 && { quickReplies }),
  }
}

/**
 * Returns the `Last-Event-ID` header, or `invalid` if it is too long. The core answers a malformed
 * id with the event `replay.reset.required`.
 */
function lastEventId(headers: Record<string, string | string[] | undefined>): string | undefined {
  const given = headers['last-event-id']
  if (given === undefined) return undefined
  return typeof given === 'string' && given.length <= EVENT_ID_MAX_LENGTH ? given : 'invalid'
}
