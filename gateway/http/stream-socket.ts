import { type ServerResponse, validateHeaderValue } from 'node:http'
import type { Socket } from 'node:net'

const streamSockets = new WeakSet<Socket>()

/**
 * Detaches the connection from its request, to save memory on streams that stay open for long. Node
 * and Fastify see a finished answer and free the request, the response, headers and logger. The
 * body ends with the connection. Further bytes of the client are dropped. Returns undefined if the
 * client has disconnected. The caller must ensure that no other request waits on the connection.
 */
export function takeSocket(response: ServerResponse): Socket | undefined {
  const { socket } = response
  if (socket === null || socket.destroyed) return undefined
  streamSockets.add(socket)
  response.emit('finish')
  // Removes the keep-alive timeout and the listener of the parser.
  socket.setTimeout(0)
  socket.removeAllListeners('data')
  socket.on('data', drop)
  return socket
}

function drop() {}

/** Returns whether an event stream uses the connection. */
export function isStreamSocket(socket: Socket): boolean {
  return streamSockets.has(socket)
}

/** Encodes status line and headers of an answer that ends with its connection. */
export function encodeHead(headers: Record<string, unknown>, now: number): string {
  const lines = Object.entries({ ...headers, date: new Date(now).toUTCString(), connection: 'close' }).map(
    ([name, value]) => {
      validateHeaderValue(name, String(value))
      return `${name}: ${value}\r\n`
    },
  )
  return `HTTP/1.1 200 OK\r\n${lines.join('')}\r\n`
}
