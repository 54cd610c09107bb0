import type { FastifyInstance } from 'fastify'

/** One line a request: what was called and how it went; no URL, header or body. A stream’s line comes when it has begun. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions } = request
    const route = routeOptions.url ?? 'unknown'
    const durationMs = Math.round(reply.elapsedTime * 10) / 10
    request.log.info({ method, route, status: reply.statusCode, durationMs }, 'request')
    done()
  })
}
