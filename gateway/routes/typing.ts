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
        summary: 'Report that the visitor types',
        description:
          'Needs the capability `typing`. A start expires after a while and with the next message, so repeat it while the visitor types.',
        tags: ['Messages'],
        body: TypingBody,
        querystring: NoQuery,
        response: Answers({ 204: Type.Null({ description: 'Operators are notified.' }) }),
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
