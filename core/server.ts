import type { IncomingMessage, RequestListener } from 'node:http'
import type net from 'node:net'
import type { TLSSocket } from 'node:tls'
import { createConnectRouter, createRouterTransport, type Transport } from '@connectrpc/connect'
import type { CoreContext } from './context.ts'
import { createPlainListener, createTlsListener, type ListenerTls } from './listener.ts'
import { createNodeHandler } from './services/node-handler.ts'
import { coreRouterOptions, coreRoutes } from './services/router.ts'

export interface CoreServer {
  /** Where it listens. */
  port: number
  /** Takes no more calls, ends those that wait or stream, and lets the others finish within `finishWithinMs`. */
  close(): Promise<void>
}

/** The same services for a gateway in the same process. */
export function inMemoryTransport(core: CoreContext): Transport {
  return createRouterTransport(coreRoutes(core), { router: coreRouterOptions(core) })
}

/** Shorter than whoever stops the process waits. */
const finishWithinMs = 5_000

/**
 * The internal services on one port: Connect, gRPC and gRPC-Web, over HTTP/1.1 or HTTP/2, and `/livez` and `/readyz`, with
 * TLS or without. Errors: rejects when the port is taken.
 */
export async function serveCore(
  core: CoreContext,
  { host, port, tls }: { host: string; port: number; tls?: ListenerTls },
): Promise<CoreServer> {
  const shutdown = new AbortController()
  const router = createConnectRouter({ ...coreRouterOptions(core), shutdownSignal: shutdown.signal })
  coreRoutes(core)(router)
  const services = createNodeHandler(router, core.logger, async (request, response) => {
    const status = await probe(core, request.url?.split('?')[0])
    response.statusCode = status
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ status: status === 200 ? 'ok' : status === 503 ? 'unavailable' : 'not found' }))
  })
  const { server, sockets, endWhenIdle } = tls
    ? createTlsListener(tls, tls.asksClients ? onlyKnownClients(services) : services)
    : createPlainListener(services)

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host === '' ? undefined : host, () => resolve())
  })

  return {
    port: (server.address() as net.AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      shutdown.abort()
      endWhenIdle()
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, finishWithinMs)
      await closed
      clearTimeout(deadline)
    },
  }
}

/** Calls of those whose certificate was accepted; whether the process lives is told to anybody. */
function onlyKnownClients(services: RequestListener): RequestListener {
  const isProbe = ({ url }: IncomingMessage) => url === '/livez' || url === '/readyz'
  return (request, response) => {
    if ((request.socket as TLSSocket).authorized || isProbe(request)) return services(request, response)
    response.statusCode = 403
    response.end()
  }
}

async function probe({ database }: CoreContext, path: string | undefined): Promise<number> {
  if (path === '/livez') return 200
  if (path !== '/readyz') return 404
  return database.ping().then(
    () => 200,
    () => 503,
  )
}
