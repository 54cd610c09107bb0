import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Maximum number of waiting requests per connection. A further request closes the connection. */
const WAITING_MAX = 100

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

/** The requests of one connection in order of arrival. */
interface Queue {
  current: Exchange | undefined
  waiting: Exchange[]
  /** Final bytes to send after the queued answers, before the connection ends. */
  lastAnswer: string | undefined
}

const queues = new WeakMap<Socket, Queue>()

/**
 * Starts a request only after the previous one on the same connection is answered (RFC 9112,
 * section 9.3.2). If an answer closes the connection, later requests never start, so they have no
 * effect.
 */
export function queueRequests(server: Server): void {
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    const { socket } = request
    const queue = queues.get(socket) ?? { current: undefined, waiting: [], lastAnswer: undefined }
    queues.set(socket, queue)
    queue.waiting.push({ request, response })
    if (queue.waiting.length > WAITING_MAX) socket.destroy()
    else if (queue.current === undefined) startNext(socket, queue)
  })

  function startNext(socket: Socket, queue: Queue): void {
    queue.current = undefined
    if (socket.destroyed || socket.writableEnded) return
    queue.current = queue.waiting.shift()
    if (queue.current === undefined) {
      queues.delete(socket)
      if (queue.lastAnswer !== undefined) socket.end(queue.lastAnswer)
      return
    }
    const { request, response } = queue.current
    // Node's parser drops the bytes after an upgrade request, so the connection cannot be kept
    // alive.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => startNext(socket, queue))
    for (const handle of handlers) handle.call(server, request, response)
  }
}

/**
 * Sends a final answer after the queued answers, then ends the connection. The final answer also
 * replaces the answer of a request whose body has not fully arrived.
 */
export function answerLast(socket: Socket, answer: string): void {
  const queue = queues.get(socket)
  if (queue?.current?.request.complete) {
    if (queue.waiting.at(-1)?.request.complete === false) queue.waiting.pop()
    queue.lastAnswer ??= answer
  } else if (queue?.current?.response.headersSent) socket.destroy()
  else socket.end(answer)
}

/** Whether further requests or a final answer are queued behind the current request. */
export function hasMoreToAnswer(socket: Socket): boolean {
  const queue = queues.get(socket)
  return queue !== undefined && (queue.waiting.length > 0 || queue.lastAnswer !== undefined)
}

/** Whether a completely received request still waits for its answer. */
export function isAnswering(socket: Socket): boolean {
  const current = queues.get(socket)?.current
  return current?.request.complete === true && !current.response.writableEnded
}
