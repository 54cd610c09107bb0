import http, { type RequestListener } from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'

/** One port on which HTTP/1.1 and HTTP/2 are spoken. */
export interface Listener {
  server: net.Server
  /** Lets each connection end as soon as no call is open on it. */
  endWhenIdle(): void
  /** Every open connection. */
  sockets: ReadonlySet<net.Socket>
}

export interface ListenerTls {
  files: TlsFiles
  /** Callers are to show a certificate, of the authorities among the files. */
  asksClients: boolean
}

const settings = { initialWindowSize: 4 * 1024 * 1024 }
const sessionWindow = 16 * 1024 * 1024
/** How often is looked whether the certificates have changed, in milliseconds. */
const lookEveryMs = 1000
/** What a client that speaks HTTP/2 without asking says first (RFC 9113, section 3.4). */
const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n')

/** Without TLS: a connection's first bytes say which of the two it is. */
export function createPlainListener(handler: RequestListener): Listener {
  const http1Server = http.createServer(handler)
  const http2Server = http2.createServer({ settings }, handler as never)
  const sessions = sessionsOf(http2Server)
  /** Those that have said nothing yet. */
  const silent = new Set<net.Socket>()

  const server = net.createServer((socket) => {
    silent.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => silent.delete(socket))
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
  return {
    server,
    sockets: socketsOf(server, 'connection'),
    endWhenIdle() {
      for (const session of sessions) session.close()
      http1Server.keepAliveTimeout = 1
      http1Server.closeIdleConnections()
      for (const socket of silent) socket.destroy()
    },
  }
}

/**
 * With TLS, where the client says which of the two it wants. Certificates that change are shown to new connections. Whoever
 * must show one and does not is refused by the handler, so that a probe without any can still ask whether the process lives.
 */
export function createTlsListener({ files, asksClients }: ListenerTls, handler: RequestListener): Listener {
  let material = files.current()
  const options = { ...material, allowHTTP1: true, requestCert: asksClients, rejectUnauthorized: false, settings }
  const server = http2.createSecureServer(options, handler as never)
  const sessions = sessionsOf(server)
  server.on('secureConnection', (socket) => socket.on('error', () => socket.destroy()))
  const looking = setInterval(() => {
    const found = files.current()
    if (found === material) return
    material = found
    server.setSecureContext(material)
  }, lookEveryMs).unref()
  server.on('close', () => clearInterval(looking))
  const sockets = socketsOf(server, 'secureConnection') as ReadonlySet<TLSSocket>
  return {
    server,
    sockets,
    endWhenIdle() {
      for (const session of sessions) session.close()
      // What speaks HTTP/1.1 here is known to nobody who could tell whether it is idle.
      for (const socket of sockets) if (socket.alpnProtocol !== 'h2') socket.end()
    },
  }
}

function sessionsOf(server: http2.Http2Server | http2.Http2SecureServer): ReadonlySet<http2.ServerHttp2Session> {
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on('session', (session: http2.ServerHttp2Session) => {
    session.setLocalWindowSize(sessionWindow)
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  return sessions
}

function socketsOf(server: net.Server, event: string): ReadonlySet<net.Socket> {
  const sockets = new Set<net.Socket>()
  server.on(event, (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  return sockets
}
