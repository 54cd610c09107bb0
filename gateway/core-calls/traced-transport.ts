import type { Transport } from '@connectrpc/connect'
import { inSpan, SpanKind, traceparentOf } from '../../platform/observability/tracing.ts'

/** Creates a transport that traces unary calls and propagates the trace to the core. */
export function createTracedTransport(transport: Transport): Transport {
  return {
    unary(method, signal, timeoutMs, header, input, values) {
      const service = method.parent.typeName
      const attributes = { 'rpc.system': 'connect_rpc', 'rpc.service': service, 'rpc.method': method.name }
      return inSpan(`${service}/${method.name}`, { kind: SpanKind.CLIENT, attributes }, () => {
        const traceparent = traceparentOf()
        const headers = new Headers(header)
        if (traceparent !== undefined) headers.set('traceparent', traceparent)
        return transport.unary(method, signal, timeoutMs, headers, input, values)
      })
    },
    stream: transport.stream,
  }
}
