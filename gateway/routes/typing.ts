import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { Answers, NoQuery } from '../schemas/fields.ts'
import { TypingBody } from '../schemas/typing.ts'
import { callOptions, type RouteDeps, visitorOf } from './route-deps.ts'

const states = { started: TypingState.STARTED, stopped: TypingState.STOPPED }

/** POST /typing. Telling the same again changes nothing, so that an `Idempotency-Key` has nothing to add. */
export const typingRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  app.post(
    '/typing',
    {
      schema: { body: TypingBody, querystring: NoQuery, response: Answers({ 204: Type.Null() }) },
      config: { scoped: true, rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      await core.messaging.setVisitorTyping({ credentials, state: states[request.body.state] }, callOptions(request))
      return reply.code(204).send(null)
    },
  )
}
