import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { Answers, NoQuery, PageContext } from '../schemas/fields.ts'
import { toPageContext } from './proto-values.ts'
import { callOptions, type RouteDeps, visitorOf } from './route-deps.ts'
import { markReplayed } from './sessions.ts'

/** POST /context/page */
export const pageContextRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, bounds }) => {
  app.post(
    '/context/page',
    {
      schema: {
        operationId: 'reportPageContext',
        summary: 'Report the page of the visitor',
        description:
          'Operators see the latest one. No value is rejected: invalid ones are dropped. With an `Idempotency-Key` it counts once, so that a late repeat does not overwrite a newer page.',
        tags: ['Session'],
        body: PageContext(bounds),
        querystring: NoQuery,
        response: Answers({ 204: Type.Null({ description: 'The page context is stored.' }) }),
      },
      config: { scoped: true, idempotent: 'optional', rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const key = request.headers['idempotency-key']
      const { replayed } = await core.sessions.reportPageContext(
        {
          credentials,
          pageContext: toPageContext(request.body),
          idempotencyKey: typeof key === 'string' ? key : undefined,
        },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return reply.code(204).send(null)
    },
  )
}
