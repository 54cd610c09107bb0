import type { FastifyInstance, FastifyReply } from 'fastify'
import type { GatewayMetrics } from '../metrics.ts'

/** Counts each request at its end, and measures its duration unless it is a stream. */
export function countRequests(app: FastifyInstance, metrics: GatewayMetrics): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions } = request
    const route = routeOptions.url ?? 'unknown'
    metrics.requests.inc({ route, method, status: `${Math.floor(reply.statusCode / 100)}xx` })
    if (!isStream(reply)) metrics.requestDuration.observe({ route, method }, reply.elapsedTime / 1000)
    done()
  })
}

const isStream = (reply: FastifyReply) =>
  /^(text\/event-stream|application\/connect\+)/.test(String(reply.getHeader('content-type')))
