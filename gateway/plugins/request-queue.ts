import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection that may wait for the answer before theirs. One more closes the connection. */
const WAITING_MAX = 100

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

/** The requests of one connection, in the order in which they arrived. */
interface Queue {
  current: Exchange | undefined
  waiting: Exchange[]
  /** Bytes of an answer without a request, after which the connection ends. */
  lastAnswer: string | undefined
}

const queues = new WeakMap<Socket, Queue>()

/**
 * Starts a request only when the one before it on the same connection is answered (RFC 9112, section 9.3.2). A request
 * behind an answer that closes the connection is never started, so it has no effect.
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
    // Node's parser drops the bytes behind a request for an upgrade, though it is answered like any other.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => startNext(socket, queue))
    for (const handle of handlers) handle.call(server, request, response)
  }
}

/**
 * Answers what is no request, in its turn, and ends the connection. A request whose bytes have not all arrived is not
 * answered by its route any more: this answer is its own.
 */
export function answerLast(socket: Socket, answer: string): void {
  const queue = queues.get(socket)
  if (queue?.current?.request.complete) {
    if (queue.waiting.at(-1)?.request.complete === false) queue.waiting.pop()
    queue.lastAnswer ??= answer
  } else if (queue?.current?.response.headersSent) socket.destroy()
  else socket.end(answer)
}

/** Whether the connection has something to answer after the request that is being answered. */
export function hasMoreToAnswer(socket: Socket): boolean {
  const queue = queues.get(socket)
  return queue !== undefined && (queue.waiting.length > 0 || queue.lastAnswer !== undefined)
}

/** Whether a request that has arrived whole waits for its answer, and not for its client. */
export function isAnswering(socket: Socket): boolean {
  const current = queues.get(socket)?.current
  return current?.request.complete === true && !current.response.writableEnded
}
