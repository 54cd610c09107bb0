import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { Answers, NoQuery } from '../schemas/fields.ts'
import { TypingBody } from '../schemas/typing.ts'
import { callOptions, type RouteDeps, visitorOf } from './route-deps.ts'

const states = { started: TypingState.STARTED, stopped: TypingState.STOPPED }

/** POST /typing. Naturally idempotent, so it takes no `Idempotency-Key`. */
export const typingRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  app.post(
    '/typing',
    {
      schema: {
        operationId: 'setTyping',
        summary: 'Tell that the visitor types',
        description:
          'Where the capability `typing` is on. A start ends by itself after a while, and with the next message: tell it again while the visitor types.',
        tags: ['Messages'],
        body: TypingBody,
        querystring: NoQuery,
        response: Answers({ 204: Type.Null({ description: 'Operators are told.' }) }),
      },
      config: { scoped: true, rate: 'calls', described: { errors: ['RouteNotAdvertised'] } },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      await core.messaging.setVisitorTyping({ credentials, state: states[request.body.state] }, callOptions(request))
      return reply.code(204).send(null)
    },
  )
}
