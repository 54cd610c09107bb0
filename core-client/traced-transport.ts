import type { Transport } from '@connectrpc/connect'
import { inSpan, SpanKind, traceparentOf } from '../platform/observability/tracing.ts'

/** Traces unary calls and propagates the trace to the core. */
export function createTracedTransport(transport: Transport): Transport {
  return {
    stream: transport.stream,
    unary: (method, signal, timeoutMs, header, input, values) =>
      inSpan(
        `${method.parent.typeName}/${method.name}`,
        {
          kind: SpanKind.CLIENT,
          attributes: { 'rpc.system': 'connect_rpc', 'rpc.service': method.parent.typeName, 'rpc.method': method.name },
        },
        () => {
          const traceparent = traceparentOf()
          const headers = traceparent === undefined ? header : withHeader(header, 'traceparent', traceparent)
          return transport.unary(method, signal, timeoutMs, headers, input, values)
        },
      ),
  }
}

function withHeader(header: Parameters<Transport['unary']>[3], name: string, value: string): Headers {
  const headers = new Headers(header)
  headers.set(name, value)
  return headers
}
