import type { Transport } from '@connectrpc/connect'
import { inSpan, SpanKind, traceparentOf } from '../platform/observability/tracing.ts'

/**
 * Creates a transport that adds the service token to each call without an `Authorization` header. It
 * also traces unary calls and propagates the trace to the core.
 */
export function createAuthorizedTransport(transport: Transport, token: string): Transport {
  // An error of `Headers` would quote the token.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError('the service token has invalid characters')
  const authorize = (header: Parameters<Transport['unary']>[3], traceparent?: string) => {
    const headers = new Headers(header)
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${token}`)
    if (traceparent !== undefined) headers.set('traceparent', traceparent)
    return headers
  }
  return {
    unary(method, signal, timeoutMs, header, input, values) {
      const service = method.parent.typeName
      const attributes = { 'rpc.system': 'connect_rpc', 'rpc.service': service, 'rpc.method': method.name }
      return inSpan(`${service}/${method.name}`, { kind: SpanKind.CLIENT, attributes }, () =>
        transport.unary(method, signal, timeoutMs, authorize(header, traceparentOf()), input, values),
      )
    },
    stream: (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, authorize(header), input, values),
  }
}
