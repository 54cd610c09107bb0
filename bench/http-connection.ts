import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface HttpAnswer {
  status: number
  body: string
}

/**
 * A keep-alive connection for one request at a time. It is minimal, so that the load uses little
 * CPU time.
 */
export interface HttpConnection {
  /** Sends a request. Rejects if the connection closes or the response has no Content-Length. */
  send(method: string, path: string, headers: Record<string, string>, body?: string): Promise<HttpAnswer>
  close(): void
}

const endOfHead = Buffer.from('\r\n\r\n')

export async function openConnection(port: number): Promise<HttpConnection> {
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let received: Buffer = Buffer.alloc(0)
  let waiting: PromiseWithResolvers<HttpAnswer> | undefined

  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const bodyAt = received.indexOf(endOfHead) + endOfHead.length
    if (bodyAt < endOfHead.length) return
    const head = received.toString('latin1', 0, bodyAt)
    const status = Number(head.slice(9, 12))
    const length = status === 204 ? '0' : /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined) return fail(new Error(`answer ${status} without Content-Length`))
    const end = bodyAt + Number(length)
    if (received.length < end) return
    const answer = { status, body: received.toString('utf8', bodyAt, end) }
    received = received.subarray(end)
    waiting?.resolve(answer)
  })
  const fail = (error: Error) => {
    waiting?.reject(error)
    socket.destroy()
  }
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('connection closed')))

  return {
    send(method, path, headers, body = '') {
      if (socket.destroyed) return Promise.reject(new Error('connection closed'))
      waiting = Promise.withResolvers()
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const length = method === 'GET' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${lines.join('')}${length}\r\n${body}`)
      return waiting.promise
    },
    close: () => socket.destroy(),
  }
}
