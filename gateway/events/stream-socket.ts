import { type ServerResponse, validateHeaderValue } from 'node:http'
import type { Socket } from 'node:net'

const streamSockets = new WeakSet<Socket>()

/**
 * Takes the connection of a request whose answer goes on for half an hour. To Node and Fastify the answer is done: they
 * let go of the request, the response, its headers and its logger, which are most of what an open stream would hold.
 * The body now lasts as long as the connection, and what else the client sends on it is dropped. Undefined where the
 * client has gone. The caller makes sure that no other request waits on the connection.
 */
export function takeSocket(response: ServerResponse): Socket | undefined {
  const { socket } = response
  if (socket === null || socket.destroyed) return undefined
  streamSockets.add(socket)
  response.emit('finish')
  // Those of the keep-alive that would follow, and of the parser.
  socket.setTimeout(0)
  socket.removeAllListeners('data')
  socket.on('data', drop)
  return socket
}

function drop(): void {}

/** Whether the connection carries an event stream now. */
export function isStreamSocket(socket: Socket): boolean {
  return streamSockets.has(socket)
}

/** Status line and headers of an answer that ends with its connection. */
export function encodeHead(headers: Record<string, unknown>, now: number): string {
  const lines = Object.entries({ ...headers, date: new Date(now).toUTCString(), connection: 'close' }).map(
    ([name, value]) => {
      validateHeaderValue(name, String(value))
      return `${name}: ${value}\r\n`
    },
  )
  return `HTTP/1.1 200 OK\r\n${lines.join('')}\r\n`
}
