import type { Transport } from '@connectrpc/connect'
import type { TlsFiles } from '../platform/tls/tls-files.ts'
import { createAuthorizedTransport } from './authorized-transport.ts'
import { connectCores } from './connect-cores.ts'
import { createFailoverTransport } from './failover-transport.ts'

export { createTlsFiles, type TlsFiles } from '../platform/tls/tls-files.ts'
export { errorInfoOf } from './error-info.ts'

/**
 * Connects an internal service to the cores, over the less busy of two. A failed call is repeated on the
 * next core if the first did not get it, or a repeat is safe. Resolves once a core's address is known, with
 * the `transport` for `createClient` of `@connectrpc/connect`, and `stop`, which closes the connections
 * after the running calls.
 */
export async function connectService(options: {
  /** `http://10.0.0.7:8090`, or `dns://core:8090` for all addresses of a name. */
  urls: readonly string[]
  /** Service token of `npm run make -- token`. */
  token: string
  /** Certificates for cores with https. */
  tls?: TlsFiles
  /** Deadline of unary calls without a timeout. Default: 5 s. Streams have no deadline. */
  deadlineMs?: number
}): Promise<{ transport: Transport; stop(): void }> {
  const { urls, token, tls, deadlineMs = 5_000 } = options
  const { cores, stop } = connectCores({ urls, tls })
  await new Promise<void>((resolve) => cores.follow({ added: () => resolve(), removed() {} }))
  return { transport: createAuthorizedTransport(createFailoverTransport({ cores, deadlineMs }), token), stop }
}
