import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { toUint32 } from '../core-calls/proto-values.ts'
import { type RouteDeps, visitorOf } from '../route-deps.ts'
import { EventsQuery } from '../schemas/messages.ts'

const EVENT_ID_MAX_LENGTH = 256

/** GET /events: the SSE stream (specification, section 6.1). */
export const eventRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { streams }) => {
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
      config: { scoped: true, rate: 'calls', described: { headers: ['Last-Event-ID'], stream: true } },
      exposeHeadRoute: false,
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const afterSequence = toUint32(request.query.afterSequence)
      const start = { afterSequence, lastEventId: lastEventId(request.headers) }
      await streams.open(reply, { credentials, start, correlationId: request.id })
      return reply
    },
  )
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
