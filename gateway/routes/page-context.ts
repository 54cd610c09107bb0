import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { Answers, NoQuery, PageContext } from '../schemas/fields.ts'
import { callOptions, type RouteDeps, visitorOf } from './route-deps.ts'
import { markReplayed } from './sessions.ts'

/** POST /context/page */
export const pageContextRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  app.post(
    '/context/page',
    {
      schema: { body: PageContext, querystring: NoQuery, response: Answers({ 204: Type.Null() }) },
      config: { scoped: true, idempotent: 'optional', rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const key = request.headers['idempotency-key']
      const { replayed } = await core.sessions.reportPageContext(
        { credentials, pageContext: request.body, ...(typeof key === 'string' ? { idempotencyKey: key } : {}) },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return reply.code(204).send(null)
    },
  )
}
