import http, { type RequestListener } from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import type { TlsFiles } from '../tls/tls-files.ts'

/** One port on which HTTP/1.1 and HTTP/2 are spoken. */
export interface Listener {
  server: net.Server
  /** Lets connections go that nobody uses. */
  closeIdle(): void
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
  http2Server.on('session', (session) => session.setLocalWindowSize(sessionWindow))

  const server = net.createServer((socket) => {
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
  return { server, sockets: socketsOf(server, 'connection'), closeIdle: () => http1Server.closeIdleConnections() }
}

/**
 * With TLS, where the client says which of the two it wants. Certificates that change are shown to new connections. Whoever
 * must show one and does not is refused by the handler, so that a probe without any can still ask whether the process lives.
 */
export function createTlsListener({ files, asksClients }: ListenerTls, handler: RequestListener): Listener {
  let material = files.current()
  const options = { ...material, allowHTTP1: true, requestCert: asksClients, rejectUnauthorized: false, settings }
  const server = http2.createSecureServer(options, handler as never)
  server.on('session', (session) => session.setLocalWindowSize(sessionWindow))
  server.on('secureConnection', (socket) => socket.on('error', () => socket.destroy()))
  const looking = setInterval(() => {
    const found = files.current()
    if (found === material) return
    material = found
    server.setSecureContext(material)
  }, lookEveryMs).unref()
  server.on('close', () => clearInterval(looking))
  return { server, sockets: socketsOf(server, 'secureConnection'), closeIdle() {} }
}

function socketsOf(server: net.Server, event: string): ReadonlySet<net.Socket> {
  const sockets = new Set<net.Socket>()
  server.on(event, (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  return sockets
}
