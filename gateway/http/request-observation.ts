import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { beginSpan, contextOf, SpanKind } from '../../platform/observability/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    trace: ReturnType<typeof beginSpan>
    failureCode: string | undefined
  }
}

/**
 * Traces, logs and counts every request. That of an event stream ends when the stream begins. Its log line
 * has no URL, header or body. An incoming `traceparent` needs trust, because any client could force
 * sampling.
 */
export function observeRequests(app: FastifyInstance) {
  const { metrics, config } = app.gateway
  const trustTraceparent = config.TRUST_PROXY !== false
  app.decorateRequest('trace', null)
  app.decorateRequest('failureCode', undefined)
  app.addHook('onRequest', (request, _reply, done) => {
    const { method, routeOptions, headers } = request
    const route = routeOptions.url ?? 'unknown'
    request.trace = beginSpan(`${method} ${route}`, {
      kind: SpanKind.SERVER,
      attributes: { 'http.request.method': method, 'http.route': route, 'service.correlation_id': request.id },
      parent: contextOf(trustTraceparent && typeof headers.traceparent === 'string' ? headers.traceparent : undefined),
    })
    continueIn(request, done)
  })
  // Events of the body stream run outside the span's context.
  app.addHook('preValidation', (request, _reply, done) => continueIn(request, done))
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions, trace } = request
    const { statusCode: status, elapsedTime } = reply
    const route = routeOptions.url ?? 'unknown'
    trace?.span.setAttribute('http.response.status_code', status).end()
    const durationMs = Math.round(elapsedTime * 10) / 10
    const isHealthy = healthRoutes.includes(route) && status < 400
    if (!isHealthy) {
      const { id: correlationId, visitor, failureCode: code } = request
      const sessionId = visitor?.sessionId
      app.log.info({ correlationId, sessionId, method, route, status, code, durationMs }, 'request')
    }
    metrics.requests.inc({ route, method, status: `${Math.floor(status / 100)}xx` })
    if (!isStream(reply)) metrics.requestDuration.observe({ route, method }, elapsedTime / 1000)
    done()
  })
}

const continueIn = ({ trace }: FastifyRequest, done: () => void) => (trace ? trace.within(done) : done())

/** Successful probes are not logged: an orchestrator sends them every second or two. */
const healthRoutes = ['/livez', '/readyz']

const isStream = (reply: FastifyReply) =>
  /^(text\/event-stream|application\/connect\+)/.test(String(reply.getHeader('content-type')))
