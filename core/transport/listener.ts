import http, { type RequestListener } from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import type { TLSSocket } from 'node:tls'
import { HEAD_MS, requireWholeHeads } from '../../platform/http/bounded-server.ts'
import { queueRequests } from '../../platform/http/request-queue.ts'
import { boundUnreadAnswers } from '../../platform/http/unread-answers.ts'
import { messageMaxBytes } from '../../platform/message-limit.ts'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'
import { boundSessions } from './http2-sessions.ts'

interface Listener {
  server: net.Server
  /**
   * Closes connections without open calls. A client may be sending a call on an idle HTTP/1.1 connection,
   * so that stays open for a second, and further answers have `Connection: close`. Clients probe more
   * often, and then call other cores.
   */
  endWhenIdle(): void
  sockets: ReadonlySet<net.Socket>
}

export interface ListenerTls {
  files: TlsFiles
  /** Whether client certificates of the configured authorities are requested. */
  asksClients: boolean
}

const maxConcurrentStreams = 2_000
const settings = { initialWindowSize: 4 * 1024 * 1024, maxConcurrentStreams }
const maxConnections = 10_000
/** Clients close idle connections earlier. */
const keepAliveMs = 75_000
const endIdleAfterMs = 1_000
/** A page or an export is sent as a whole, and a gateway reads it as slowly as its own client. */
const unreadLimits = { maxMs: 120_000, maxBytes: 2 * messageMaxBytes, totalMaxBytes: 256 * 1024 * 1024 }
const certificateCheckMs = 1000
/** First bytes that an HTTP/2 client with prior knowledge sends (RFC 9113, section 3.4). */
const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n')

/**
 * Creates a listener without TLS. The first bytes of a connection determine the protocol. A connection
 * without a whole head within `headMs` is closed.
 */
export function createPlainListener(handler: RequestListener, headMs = HEAD_MS): Listener {
  const http1 = trackHttp1(handler)
  const http1Server = http.createServer({ keepAliveTimeout: keepAliveMs }, http1.handler)
  queueRequests(http1Server)
  requireWholeHeads(http1Server, headMs)
  // Node measures heads only for servers that listen themselves.
  http1Server.emit('listening')
  const http2Server = http2.createServer({ settings }, handler as never)
  boundUnreadAnswers(http2Server, { limits: unreadLimits, events: ['stream'] })
  const sessions = boundSessions(http2Server, headMs)
  const http1Sockets = socketsOf(http1Server, 'connection')
  const silent = new Set<net.Socket>()

  const server = net.createServer((socket) => {
    const timer = setTimeout(() => socket.destroy(), headMs).unref()
    let start = Buffer.alloc(0)
    silent.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', known)
    socket.on('readable', determine)

    function known() {
      clearTimeout(timer)
      silent.delete(socket)
      socket.off('readable', determine)
    }

    function determine() {
      const chunk = socket.read() as Buffer | null
      if (chunk === null) return
      start = Buffer.concat([start, chunk])
      const length = Math.min(start.length, http2Preface.length)
      const isHttp2 = start.subarray(0, length).equals(http2Preface.subarray(0, length))
      if (isHttp2 && length < http2Preface.length) return
      known()
      socket.unshift(start)
      const target = isHttp2 ? http2Server : http1Server
      target.emit('connection', socket)
    }
  })
  boundUnreadAnswers(server, { limits: unreadLimits })
  server.on('close', () => {
    http1Server.close()
    http2Server.close()
  })
  server.maxConnections = maxConnections
  return {
    server,
    sockets: socketsOf(server, 'connection'),
    endWhenIdle() {
      for (const session of sessions) session.close()
      http1.endWhenIdle(http1Sockets)
      for (const socket of silent) socket.destroy()
    },
  }
}

/**
 * Creates a listener with TLS. ALPN determines the protocol. New connections use changed certificates.
 * The handler rejects missing client certificates, so that health probes need none.
 */
export function createTlsListener(
  { files, asksClients }: ListenerTls,
  handler: RequestListener,
  headMs = HEAD_MS,
): Listener {
  let material = files.current()
  const clients = { requestCert: asksClients, rejectUnauthorized: false }
  const options = { ...material, ...clients, allowHTTP1: true, handshakeTimeout: headMs, settings }
  const http1 = trackHttp1(handler)
  const server = http2.createSecureServer(options, http1.handler as never)
  queueRequests(server)
  Object.assign(server, { keepAliveTimeout: keepAliveMs, maxConnections })
  requireWholeHeads(server, headMs)
  server.on('secureConnection', (socket) => socket.on('error', () => socket.destroy()))
  boundUnreadAnswers(server, { limits: unreadLimits, events: ['secureConnection', 'stream'] })
  const sessions = boundSessions(server, headMs)
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
      http1.endWhenIdle([...sockets].filter((socket) => socket.alpnProtocol !== 'h2'))
    },
  }
}

/** Tracks open requests, which Node counts only for servers that listen on a port themselves. */
function trackHttp1(handler: RequestListener) {
  const openResponses = new Map<net.Socket, http.ServerResponse>()
  let isEnding = false

  function track({ socket }: http.IncomingMessage, response: http.ServerResponse) {
    openResponses.set(socket, response)
    if (isEnding) response.shouldKeepAlive = false
    response.once('close', () => {
      openResponses.delete(socket)
      if (isEnding) socket.end()
    })
  }

  return {
    handler: ((request, response) => {
      if (request.httpVersionMajor === 1) track(request, response)
      return handler(request, response)
    }) satisfies RequestListener,
    endWhenIdle(sockets: Iterable<net.Socket>) {
      isEnding = true
      for (const response of openResponses.values()) response.shouldKeepAlive = false
      const endIdle = () => {
        for (const socket of sockets) if (!openResponses.has(socket)) socket.end()
      }
      setTimeout(endIdle, endIdleAfterMs).unref()
    },
  }
}

function socketsOf(server: net.Server, event: string): ReadonlySet<net.Socket> {
  const sockets = new Set<net.Socket>()
  server.on(event, (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  return sockets
}
