import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { isStreamSocket } from '../events/stream-socket.ts'
import { rawAnswer } from './raw-answer.ts'
import { answerLast } from './request-queue.ts'

/** Answers what Node's parser refuses before there is a request: broken HTTP, overlong headers, a request too slow. */
export function answerMalformedRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  // The parser still waits for the rest of a request that began before the stream took the connection.
  if (isStreamSocket(socket) && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return
  if (error.code === 'ECONNRESET' || isStreamSocket(socket)) socket.destroy()
  // Destroying an ended connection now could take the answer from a client that still sends.
  else if (!socket.writableEnded) answerLast(socket, rawAnswer(malformed(error.code)))
}

/** Hands to the routes what Node would otherwise answer itself, without an envelope. */
export function takeOverNodeAnswers(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (_request, socket: Socket) => {
    socket.on('error', () => socket.destroy())
    // Node no longer reads. Without reading, the end of the client's side is not seen.
    socket.resume()
    answerLast(socket, rawAnswer(new GatewayError('MethodNotAllowed', { allow: ['GET', 'POST'] })))
  })
}

function malformed(code: string | undefined): GatewayError {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new GatewayError('PayloadTooLarge')
  const rule = code === 'HPE_HEADER_OVERFLOW' ? 'headerSize' : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'timeout' : 'http'
  return new GatewayError('ValidationFailed', { issues: [{ path: '', rule }] })
}
