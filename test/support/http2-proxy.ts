import { once } from 'node:events'
import { request } from 'node:http'
import { createSecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { testCertificates } from './certificates.ts'

export interface Http2Proxy {
  port: number
  /** Number of open HTTP/2 connections. */
  connections(): number
  close(): Promise<void>
}

/** Starts an HTTP/2 proxy with TLS in front of an HTTP/1.1 server, as a production setup has. */
export async function startHttp2Proxy(targetUrl: string): Promise<Http2Proxy> {
  const { hostname, port } = new URL(targetUrl)
  const sessions = new Set<ServerHttp2Session>()
  const server = createSecureServer({ ...testCertificates.good, allowHTTP1: false }, (incoming, outgoing) => {
    const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !name.startsWith(':')))
    const forwarded = request({ hostname, port, method: incoming.method, path: incoming.url, headers }, (answer) => {
      const { connection, 'keep-alive': _, 'transfer-encoding': __, ...rest } = answer.headers
      outgoing.writeHead(answer.statusCode!, rest)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.stream?.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
  })
  server.listen(0)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sessions.size,
    async close() {
      for (const session of sessions) session.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
