import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { type AcceptedMessage, type Message, TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { timeOf, toAdvisory, toUint32 } from '../core-calls/proto-values.ts'
import { GatewayError } from '../errors.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import {
  HistoryAnswer,
  HistoryQuery,
  type MessageAnswer,
  ReceiptBody,
  RetryParams,
  SendMessageAnswer,
  SendMessageBody,
  StopAnswer,
  StopParams,
  TypingBody,
} from '../schemas/messages.ts'
import { markReplayed } from './sessions.ts'

const typingStates = { started: TypingState.STARTED, stopped: TypingState.STOPPED }

/**
 * POST and GET /messages, POST /messages/{clientOperationId}/retry, /messages/{messageId}/stop,
 * /messages/receipts, /typing
 */
export const messageRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, batcher }) => {
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
        described: { errors: ['ConsentRequired'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const accepted = await batcher.send({
        ...request.body,
        ...toAdvisory(request.body),
        credentials,
        correlationId: request.id,
      })
      markReplayed(reply, accepted.replayed)
      return reply.code(202).send(toAccepted(accepted))
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
        described: { errors: ['ConsentRequired'] },
        idempotent: true,
        keyField: 'clientOperationId',
        rate: 'sends',
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      if (request.params.clientOperationId !== request.body.clientOperationId) {
        throw new GatewayError('ValidationFailed', { issues: [{ path: '/clientOperationId', rule: 'const' }] })
      }
      const accepted = await batcher.send({
        ...request.body,
        ...toAdvisory(request.body),
        credentials,
        retryRoute: true,
        correlationId: request.id,
      })
      markReplayed(reply, accepted.replayed)
      return reply.code(202).send(toAccepted(accepted))
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
      const page = await core.messaging.listVisitorMessages(
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
      config: {
        scoped: true,
        advertisedBy: 'stopAnswer',
        idempotent: true,
        rate: 'calls',
        described: { errors: ['RouteNotAdvertised', 'NotFound'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const idempotencyKey = idempotencyKeyOf(request)
      const { replayed, messageId, state, sequence } = await core.messaging.stopAnswer(
        { credentials, idempotencyKey, ...request.params },
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
      config: {
        scoped: true,
        advertisedBy: 'receipts',
        rate: 'calls',
        described: { errors: ['RouteNotAdvertised'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const { upToSequence, state } = request.body
      await core.messaging.reportReceipt(
        { credentials, upToSequence: toUint32(upToSequence)!, state },
        callOptions(request),
      )
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
        idempotent: 'optional',
        rate: 'calls',
        described: { errors: ['RouteNotAdvertised', 'ConsentRequired'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      await core.messaging.setVisitorTyping(
        { credentials, state: typingStates[request.body.state] },
        callOptions(request),
      )
      return reply.code(204).send(null)
    },
  )
}

function toAccepted(accepted: AcceptedMessage): SendMessageAnswer {
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
