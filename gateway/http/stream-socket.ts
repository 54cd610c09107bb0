import { type ServerResponse, validateHeaderValue } from 'node:http'
import type { Socket } from 'node:net'

const streamSockets = new WeakSet<Socket>()

/**
 * Detaches the connection from its request, so that Node and Fastify free all but the socket. The body ends
 * with the connection; further bytes of the client are dropped. Returns undefined if the client has
 * disconnected. No other request may wait on the connection.
 */
export function takeSocket(response: ServerResponse): Socket | undefined {
  const { socket } = response
  if (socket === null || socket.destroyed) return undefined
  streamSockets.add(socket)
  response.emit('finish')
  socket.setTimeout(0)
  socket.removeAllListeners('data')
  socket.on('data', drop)
  return socket
}

function drop() {}

export function isStreamSocket(socket: Socket): boolean {
  return streamSockets.has(socket)
}

export function encodeHead(headers: Record<string, unknown>, now: number): string {
  const lines = Object.entries({ ...headers, date: new Date(now).toUTCString(), connection: 'close' }).map(
    ([name, value]) => {
      validateHeaderValue(name, String(value))
      return `${name}: ${value}\r\n`
    },
  )
  return `HTTP/1.1 200 OK\r\n${lines.join('')}\r\n`
}
