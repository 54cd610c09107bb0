import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Maximum number of waiting requests of a connection. A further one closes it. */
const WAITING_MAX = 100

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

interface Queue {
  current: Exchange | undefined
  waiting: Exchange[]
  isPaused: boolean
  /** Bytes to send after the queued answers, before the connection ends. */
  lastAnswer: string | undefined
}

const queues = new WeakMap<Socket, Queue>()

/**
 * Starts a request only after the previous one on the connection is answered (RFC 9112, section 9.3.2). If an
 * answer closes the connection, later requests have no effect. Stops reading while requests wait, so that a
 * connection holds one answer. HTTP/2 requests start at once.
 */
export function queueRequests(server: EventEmitter) {
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.httpVersionMajor === 2) return handle(request, response)
    const { socket } = request
    const queue = queues.get(socket) ?? { current: undefined, waiting: [], isPaused: false, lastAnswer: undefined }
    queues.set(socket, queue)
    queue.waiting.push({ request, response })
    if (queue.waiting.length > WAITING_MAX) socket.destroy()
    else if (queue.current === undefined) startNext(socket, queue)
    else if (!queue.isPaused) pause(socket, queue)
  })

  function handle(request: IncomingMessage, response: ServerResponse) {
    for (const each of handlers) each.call(server, request, response)
  }

  function startNext(socket: Socket, queue: Queue) {
    queue.current = undefined
    if (socket.destroyed || socket.writableEnded) return
    queue.current = queue.waiting.shift()
    if (queue.current === undefined) {
      queues.delete(socket)
      if (queue.lastAnswer !== undefined) socket.end(queue.lastAnswer)
      return
    }
    const { request, response } = queue.current
    // Node's parser drops the bytes after an upgrade request, so the connection cannot be kept alive.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => startNext(socket, queue))
    if (queue.isPaused && queue.waiting.length === 0) resume(socket, queue)
    handle(request, response)
  }
}

function pause(socket: Socket, queue: Queue) {
  queue.isPaused = true
  // Node resumes a socket after each complete request.
  socket.on('resume', pauseAgain)
  socket.pause()
}

function resume(socket: Socket, queue: Queue) {
  queue.isPaused = false
  socket.off('resume', pauseAgain)
  socket.resume()
}

function pauseAgain(this: Socket) {
  this.pause()
}

/** Sends a final answer after the queued ones, also to an unfinished request, and ends the connection. */
export function answerLast(socket: Socket, answer: string) {
  const queue = queues.get(socket)
  if (queue?.current?.request.complete) {
    if (queue.waiting.at(-1)?.request.complete === false) queue.waiting.pop()
    queue.lastAnswer ??= answer
  } else if (queue?.current?.response.headersSent) socket.destroy()
  else socket.end(answer)
}

/** Returns the request of the connection whose body has not fully arrived. */
export function unfinishedRequest(socket: Socket): IncomingMessage | undefined {
  const queue = queues.get(socket)
  return [queue?.current, ...(queue?.waiting ?? [])].find((each) => each?.request.complete === false)?.request
}

export function hasMoreToAnswer(socket: Socket): boolean {
  const queue = queues.get(socket)
  return queue !== undefined && (queue.waiting.length > 0 || queue.lastAnswer !== undefined)
}

export function isAnswering(socket: Socket): boolean {
  const current = queues.get(socket)?.current
  return current?.request.complete === true && !current.response.writableEnded
}
