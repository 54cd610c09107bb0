import type { Transport } from '@connectrpc/connect'

/** Adds the service token to each call without an `Authorization` header. */
export function createAuthorizedTransport(transport: Transport, token: string): Transport {
  // An error of `Headers` would quote the token.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError('the service token has invalid characters')
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
