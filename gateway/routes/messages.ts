import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { preValidationHookHandler } from 'fastify'
import type { AcceptedMessage, Message } from '#proto/messaging/v1/messaging_pb.js'
import { GatewayError } from '../errors.ts'
import { Answers, NoQuery } from '../schemas/fields.ts'
import {
  HistoryAnswer,
  HistoryQuery,
  type MessageAnswer,
  RetryParams,
  SendMessageAnswer,
  SendMessageBody,
} from '../schemas/messages.ts'
import { timeOf, toAdvisory, toUint32 } from './proto-values.ts'
import { callOptions, type RouteDeps, visitorOf } from './route-deps.ts'
import { markReplayed } from './sessions.ts'

/** Converts CRLF and CR to LF before the body is validated. */
const useLineFeeds: preValidationHookHandler = (request, _reply, done) => {
  const sent = request.body as { body?: unknown } | null | undefined
  if (typeof sent?.body === 'string') sent.body = sent.body.replace(/\r\n?/g, '\n')
  done()
}

/** POST and GET /messages, POST /messages/{clientOperationId}/retry */
export const messageRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, batcher, bounds }) => {
  const body = SendMessageBody(bounds)

  app.post(
    '/messages',
    {
      preValidation: useLineFeeds,
      schema: {
        operationId: 'sendMessage',
        summary: 'Send a message',
        description:
          'Idempotent: a repeat with the same input gets the first answer again. When it is answered, the message is stored durably.',
        tags: ['Messages'],
        body,
        querystring: NoQuery,
        response: Answers({ 202: SendMessageAnswer }),
      },
      config: { scoped: true, idempotent: true, keyField: 'clientOperationId', rate: 'sends' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const accepted = await batcher.send({ ...request.body, ...toAdvisory(request.body), credentials })
      markReplayed(reply, accepted.replayed)
      return reply.code(202).send(toAccepted(accepted))
    },
  )

  app.post(
    '/messages/:clientOperationId/retry',
    {
      preValidation: useLineFeeds,
      schema: {
        operationId: 'retryMessage',
        summary: 'Send a message again by its operation id',
        description:
          'The same as a repeat of `POST /messages`, for installations with `messageRetryRoute`: returns the first answer, or sends the message now.',
        tags: ['Messages'],
        params: RetryParams,
        body,
        querystring: NoQuery,
        response: Answers({ 202: SendMessageAnswer }),
      },
      config: {
        scoped: true,
        advertisedBy: 'messageRetryRoute',
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
          'A page of the conversation, the oldest message first: after `afterSequence`, just before `beforeSequence`, or from the start. Not both.',
        tags: ['Messages'],
        querystring: HistoryQuery(bounds),
        response: Answers({ 200: HistoryAnswer }),
      },
      config: { scoped: true, rate: 'calls' },
    },
    async (request) => {
      const { credentials } = visitorOf(request)
      const { afterSequence, beforeSequence, limit } = request.query
      const page = await core.messaging.listVisitorMessages(
        { credentials, afterSequence: toUint32(afterSequence), beforeSequence: toUint32(beforeSequence), limit },
        callOptions(request),
      )
      const { hasMore, lastSequence, oldestSequence } = page
      return { messages: page.messages.map(toAnswer), hasMore, lastSequence, oldestSequence }
    },
  )
}

function toAccepted(accepted: AcceptedMessage): SendMessageAnswer {
  const { clientOperationId, messageId, sessionId, conversationId, sequence, state, acceptedAt } = accepted
  return {
    clientOperationId,
    messageId,
    sessionId,
    conversationId,
    sequence,
    state,
    acceptedAt: timeOf(acceptedAt),
  }
}

function toAnswer(message: Message): MessageAnswer {
  if (message.author === undefined) throw new Error('a message from the core has no author')
  const { kind, displayName, avatarUrl } = message.author
  return {
    messageId: message.messageId,
    clientOperationId: message.clientOperationId,
    sessionId: message.sessionId,
    conversationId: message.conversationId,
    sequence: message.sequence,
    author: { kind, displayName, avatarUrl },
    body: message.body,
    contentType: message.contentType,
    locale: message.locale,
    state: message.state,
    createdAt: timeOf(message.createdAt),
  }
}
