import type { IncomingMessage, RequestListener } from 'node:http'
import type net from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Code, ConnectError, createConnectRouter, type Transport } from '@connectrpc/connect'
import type { Core } from './core.ts'
import { databaseCheckOf } from './database/database-check.ts'
import { createCoreServices } from './rpc/router.ts'
import { type CallMemory, createCallMemory } from './transport/call-memory.ts'
import { createPlainListener, createTlsListener, type ListenerTls } from './transport/listener.ts'
import { createNodeHandler } from './transport/node-handler.ts'

export type CoreServer = Awaited<ReturnType<typeof listenForCore>>

/** Returns a transport that calls the services in this process, without a network. */
export function inMemoryTransport(core: Core): Transport {
  return createCoreServices(core).transport
}

/** Running calls get this time when the server closes. It must be shorter than the time for the process to stop. */
const finishWithinMs = 5_000

interface CoreListenOptions {
  host: string
  port: number
  tls?: ListenerTls
  memory?: CallMemory
}

export async function serveCore(core: Core, options: CoreListenOptions) {
  const server = await listenForCore(options)
  server.serve(core)
  return server
}

/**
 * Listens on one port for Connect, gRPC and gRPC-Web over HTTP/1.1 or HTTP/2, and for `/livez` and `/readyz`.
 * Before `serve`, `/livez` returns 200 and all other paths 503. Each of these answers closes its connection, so
 * that gateways send no calls. Rejects if the port is in use.
 */
export async function listenForCore({ host, port, tls, memory = createCallMemory() }: CoreListenOptions) {
  const shutdown = new AbortController()
  let serving: RequestListener = (request, response) => {
    response.shouldKeepAlive = false
    answerProbe(response, pathOf(request) === '/livez' ? 200 : 503)
  }
  const services: RequestListener = (request, response) => serving(request, response)
  const checked = tls?.asksClients ? requireClientCertificate(services) : services
  const handler: RequestListener = (request, response) => checked(inUsualForm(request), response)
  const { server, sockets, endWhenIdle } = tls ? createTlsListener(tls, handler) : createPlainListener(handler)

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host === '' ? undefined : host, () => resolve())
  })

  return {
    port: (server.address() as net.AddressInfo).port,
    serve(core: Core) {
      const { authenticate, options, routes, find } = createCoreServices(core)
      const router = createConnectRouter({ ...options, shutdownSignal: shutdown.signal })
      routes(router)
      serving = createNodeHandler({
        authenticate,
        router,
        find,
        memory,
        shutdown: shutdown.signal,
        logger: core.logger,
        fallback: async (request, response) => answerProbe(response, await probe(core, pathOf(request))),
      })
    },
    /** Stops accepting calls. Ends streams and waiting calls, and gives other calls `finishWithinMs`. */
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      shutdown.abort(new ConnectError('the core is stopping', Code.Unavailable))
      endWhenIdle()
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, finishWithinMs)
      await closed
      clearTimeout(deadline)
    },
  }
}

/**
 * Converts two forms that Connect does not accept, but the gateway does: a target with scheme and host (RFC 9112,
 * section 3.2.2), and a charset in quotes or between spaces.
 */
function inUsualForm(request: IncomingMessage) {
  const { url, headers } = request
  if (!url?.startsWith('/')) request.url = url?.replace(/^https?:\/\/[^/?#]*/i, '') || '/'
  const type = headers['content-type']
  if (type?.includes(';'))
    headers['content-type'] = type.replace(/^([^ ;]+) *; *charset="?utf-8"? *$/i, '$1; charset=utf-8')
  return request
}

const pathOf = ({ url }: { url?: string | undefined }) => url?.split('?')[0]

interface ProbeResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body: string): unknown
}

function answerProbe(response: ProbeResponse, status: number) {
  response.statusCode = status
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ status: status === 200 ? 'ok' : status === 503 ? 'unavailable' : 'not found' }))
}

/** Allows calls only with an accepted client certificate. Probes need none. */
function requireClientCertificate(services: RequestListener): RequestListener {
  const isProbe = ({ url }: IncomingMessage) => url === '/livez' || url === '/readyz'
  return (request, response) => {
    if ((request.socket as TLSSocket).authorized || isProbe(request)) return services(request, response)
    response.statusCode = 403
    response.end()
  }
}

async function probe(core: Core, path: string | undefined) {
  if (path === '/livez') return 200
  if (path !== '/readyz') return 404
  return (await databaseCheckOf(core).isAway()) ? 503 : 200
}
