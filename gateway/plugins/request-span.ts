import type { FastifyInstance } from 'fastify'
import { beginSpan, contextOf, SpanKind } from '../../platform/observability/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    trace: ReturnType<typeof beginSpan> | null
  }
}

/**
 * Creates one span per request. The span of an event stream ends when the stream begins. An
 * incoming `traceparent` is used only behind a trusted proxy: otherwise any client could force
 * sampling.
 */
export function traceRequests(app: FastifyInstance, { trustTraceparent }: { trustTraceparent: boolean }): void {
  app.decorateRequest('trace', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const { method, routeOptions, headers } = request
    const route = routeOptions.url ?? 'unknown'
    request.trace = beginSpan(`${method} ${route}`, {
      kind: SpanKind.SERVER,
      attributes: { 'http.request.method': method, 'http.route': route, 'service.correlation_id': request.id },
      parent: contextOf(trustTraceparent && typeof headers.traceparent === 'string' ? headers.traceparent : undefined),
    })
    request.trace.within(done)
  })
  // Events of the body stream run outside the context of the span, so enter it again.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.trace) request.trace.within(done)
    else done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    request.trace?.span.setAttribute('http.response.status_code', reply.statusCode).end()
    done()
  })
}
