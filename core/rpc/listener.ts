import http, { type RequestListener } from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'

/** One port that serves HTTP/1.1 and HTTP/2. */
export interface Listener {
  server: net.Server
  /** Closes each connection once it has no open calls. */
  endWhenIdle(): void
  /** All open connections. */
  sockets: ReadonlySet<net.Socket>
}

export interface ListenerTls {
  files: TlsFiles
  /** Requests client certificates, issued by the configured authorities. */
  asksClients: boolean
}

const settings = { initialWindowSize: 4 * 1024 * 1024 }
const sessionWindow = 16 * 1024 * 1024
/** How often certificates are checked for changes, in milliseconds. */
const certificateCheckMs = 1000
/** First bytes of an HTTP/2 client with prior knowledge (RFC 9113, section 3.4). */
const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n')

/** Without TLS: the first bytes of a connection determine the protocol. */
export function createPlainListener(handler: RequestListener): Listener {
  const http1Server = http.createServer(handler)
  const http2Server = http2.createServer({ settings }, handler as never)
  const sessions = sessionsOf(http2Server)
  /** Connections that have sent nothing yet. */
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
 * With TLS: ALPN determines the protocol. New connections use changed certificates. The handler,
 * not TLS, rejects missing client certificates, so that health probes need none.
 */
export function createTlsListener({ files, asksClients }: ListenerTls, handler: RequestListener): Listener {
  let material = files.current()
  const options = { ...material, allowHTTP1: true, requestCert: asksClients, rejectUnauthorized: false, settings }
  const server = http2.createSecureServer(options, handler as never)
  const sessions = sessionsOf(server)
  server.on('secureConnection', (socket) => socket.on('error', () => socket.destroy()))
  const timer = setInterval(() => {
    const found = files.current()
    if (found === material) return
    material = found
    server.setSecureContext(material)
  }, certificateCheckMs).unref()
  server.on('close', () => clearInterval(timer))
  const sockets = socketsOf(server, 'secureConnection') as ReadonlySet<TLSSocket>
  return {
    server,
    sockets,
    endWhenIdle() {
      for (const session of sessions) session.close()
      // HTTP/1.1 connections on this server do not report whether they are idle.
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
