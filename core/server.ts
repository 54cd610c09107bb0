import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { createConnectRouter, createRouterTransport, type Transport } from '@connectrpc/connect'
import type { CoreContext } from './context.ts'
import { createNodeHandler } from './services/node-handler.ts'
import { coreRouterOptions, coreRoutes } from './services/router.ts'

export interface CoreServer {
  /** Where it listens. */
  port: number
  /** Stops taking calls and ends those that are open. */
  close(): Promise<void>
}

/** The same services for a gateway in the same process. */
export function inMemoryTransport(core: CoreContext): Transport {
  return createRouterTransport(coreRoutes(core), { router: coreRouterOptions(core) })
}

/** What a client that speaks HTTP/2 without asking says first (RFC 9113, section 3.4). */
const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n')

/**
 * The internal services on one port: Connect, gRPC and gRPC-Web, over HTTP/1.1 or HTTP/2 without TLS, and `/livez` and
 * `/readyz`. Errors: rejects when the port is taken.
 */
export async function serveCore(
  core: CoreContext,
  { host, port }: { host: string; port: number },
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
  const http1Server = http.createServer(services)
  const http2Server = http2.createServer({ settings: { initialWindowSize: 4 * 1024 * 1024 } }, services)
  http2Server.on('session', (session) => session.setLocalWindowSize(16 * 1024 * 1024))
  const sockets = new Set<net.Socket>()

  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.once('readable', () => {
      const start = socket.read() as Buffer | null
      if (start === null) return
      socket.unshift(start)
      const length = Math.min(start.length, http2Preface.length)
      const isHttp2 = start.subarray(0, length).equals(http2Preface.subarray(0, length))
      const target = isHttp2 ? http2Server : http1Server
      target.emit('connection', socket)
    })
  })

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host === '' ? undefined : host, () => resolve())
  })

  return {
    port: (server.address() as net.AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      shutdown.abort()
      http1Server.closeIdleConnections()
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, 1000)
      for (const socket of sockets) socket.end()
      await closed
      clearTimeout(deadline)
    },
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
