import type { FastifyInstance } from 'fastify'

/**
 * Logs one line per request with route, status and duration, but no URL, header or body. A stream
 * is logged when it begins.
 */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions } = request
    const route = routeOptions.url ?? 'unknown'
    const durationMs = Math.round(reply.elapsedTime * 10) / 10
    request.log.info({ method, route, status: reply.statusCode, durationMs }, 'request')
    done()
  })
}
