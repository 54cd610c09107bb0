import type { Transport } from '@connectrpc/connect'

/** Adds the service token to each call that has no `Authorization` header yet. */
export function createAuthorizedTransport(transport: Transport, token: string): Transport {
  const authorize = (header: Parameters<Transport['unary']>[3]) => {
    const headers = new Headers(header)
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${token}`)
    return headers
  }
  return {
    unary: (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs, authorize(header), input, values),
    stream: (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, authorize(header), input, values),
  }
}
