import { once } from 'node:events'
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { testCertificates } from './certificates.ts'
import { type Behaviour, behaviours } from './receiver-behaviours.ts'

export interface ReceivedRequest {
  path: string
  method: string
  headers: IncomingHttpHeaders
  /** Alternating header names and values, as received. */
  rawHeaders: string[]
  body: Buffer
}

/** A webhook destination over HTTP and HTTPS. The path of a request selects its behaviour. */
export interface Receiver {
  /** URL for HTTP: `http://127.0.0.1:…`. */
  http: string
  port: number
  httpsPort: number
  /** URL for HTTPS: `https://<name>.receiver.example:…`. The name is one of `tlsNames`. */
  https(name: string): string
  requests: ReceivedRequest[]
  to(path: string): ReceivedRequest[]
  /** Total number of TCP connections so far. */
  connections(): number
  /** Number of open TCP connections. */
  openConnections(): number
  /** Number of bytes that the receiver has sent on all connections. */
  bytesSent(): number
  /** Sets the behaviour of a path. */
  on(path: string, behaviour: Behaviour): void
  close(): Promise<void>
}

/** Host names under `receiver.example`. Each name except `good` selects a TLS defect. */
export const tlsNames = ['good', 'wrong-name', 'expired', 'self-signed', 'hang-in-tls', 'reset-in-tls'] as const

export async function startReceiver(host = '127.0.0.1'): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const own = new Map<string, Behaviour>()
  const sockets = new Set<Socket>()
  let connections = 0
  let bytesOfClosed = 0

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {})
    const { url: path = '', method = '', headers, rawHeaders } = request
    const body = Buffer.concat(await request.toArray().catch(() => []))
    requests.push({ path, method, headers, rawHeaders, body })
    const name = path.slice(1).split('?')[0] ?? ''
    const behaviour = own.get(path) ?? behaviours[name]
    if (behaviour) return behaviour(request, response)
    if (/^[2-5]\d\d$/.test(name)) return response.writeHead(Number(name)).end('{"received":true}')
    response.writeHead(404).end()
  }

  const plain = http.createServer(serve)
  const secure = https.createServer({ ...testCertificates.good, SNICallback: chooseCertificate }, serve)
  for (const server of [plain, secure] as Server[]) {
    server.on('connection', (socket: Socket) => {
      connections++
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        bytesOfClosed += socket.bytesWritten
      })
    })
    server.listen(0, host)
    await once(server, 'listening')
  }
  secure.on('secureConnection', (socket) => socket.on('error', () => {}))
  secure.on('tlsClientError', () => {})
  const { port } = plain.address() as AddressInfo
  const { port: httpsPort } = secure.address() as AddressInfo

  function chooseCertificate(
    name: string,
    answer: (error: Error | null, context?: ReturnType<typeof createSecureContext>) => void,
  ) {
    const kind = name.replace(/\.receiver\.example$/, '')
    if (kind === 'hang-in-tls') return
    if (kind === 'reset-in-tls') {
      for (const socket of sockets) if (socket.localPort === httpsPort) socket.resetAndDestroy()
      return
    }
    const { good, wrongName, expired, selfSigned } = testCertificates
    const certificate = { 'wrong-name': wrongName, expired, 'self-signed': selfSigned }[kind] ?? good
    answer(null, createSecureContext(certificate))
  }

  return {
    http: `http://${host}:${port}`,
    port,
    httpsPort,
    https: (name) => `https://${name}.receiver.example:${httpsPort}`,
    requests,
    to: (path) => requests.filter((request) => request.path === path),
    connections: () => connections,
    openConnections: () => sockets.size,
    bytesSent: () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, bytesOfClosed),
    on: (path, behaviour) => void own.set(path, behaviour),
    async close() {
      for (const socket of sockets) socket.destroy()
      await Promise.all([plain, secure].map((server) => new Promise((resolve) => server.close(resolve))))
    },
  }
}
