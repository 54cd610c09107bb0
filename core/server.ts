import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { createRouterTransport, type Transport } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import type { CoreContext } from './context.ts'
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
  const services = connectNodeAdapter({
    routes: coreRoutes(core),
    ...coreRouterOptions(core),
    shutdownSignal: shutdown.signal,
    fallback: async (request, response) => {
      const status = await probe(core, request.url?.split('?')[0])
      response.statusCode = status
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ status: status === 200 ? 'ok' : status === 503 ? 'unavailable' : 'not found' }))
    },
  })
  const http1Server = http.createServer(services)
  const http2Server = http2.createServer({ settings: { initialWindowSize: 4 * 1024 * 1024 } }, services)
  const http2Sessions = new Set<http2.ServerHttp2Session>()
  http2Server.on('session', (session) => {
    session.setLocalWindowSize(16 * 1024 * 1024)
    http2Sessions.add(session)
    session.on('close', () => http2Sessions.delete(session))
  })
  const sockets = new Set<net.Socket>()
  /** Those that have said nothing yet. */
  const silent = new Set<net.Socket>()

  const server = net.createServer((socket) => {
    sockets.add(socket)
    silent.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      silent.delete(socket)
    })
    socket.on('error', () => socket.destroy())
    socket.once('readable', () => {
      silent.delete(socket)
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
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, finishWithinMs)
      for (const session of http2Sessions) session.close()
      http1Server.keepAliveTimeout = 1
      http1Server.closeIdleConnections()
      for (const socket of silent) socket.destroy()
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
