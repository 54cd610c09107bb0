import type { FastifyInstance } from 'fastify'
import { beginSpan, contextOf, SpanKind } from '../../platform/observability/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    trace: ReturnType<typeof beginSpan> | null
  }
}

/**
 * One span a request, an event stream's until it has begun. It goes on with the trace that the request names only where a proxy is
 * trusted: anybody else could choose what is kept.
 */
export function traceRequests(app: FastifyInstance, { believed }: { believed: boolean }): void {
  app.decorateRequest('trace', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const { method, routeOptions, headers } = request
    const route = routeOptions.url ?? 'unknown'
    request.trace = beginSpan(`${method} ${route}`, {
      kind: SpanKind.SERVER,
      attributes: { 'http.request.method': method, 'http.route': route, 'service.correlation_id': request.id },
      parent: contextOf(believed && typeof headers.traceparent === 'string' ? headers.traceparent : undefined),
    })
    request.trace.within(done)
  })
  // The events of a body that was read do not belong to the span's context.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.trace) request.trace.within(done)
    else done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    request.trace?.span.setAttribute('http.response.status_code', reply.statusCode).end()
    done()
  })
}
