import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { answerLast, unfinishedRequest } from '../../platform/http/request-queue.ts'
import { GatewayError } from '../errors.ts'
import { rawAnswer } from './raw-answer.ts'
import { isStreamSocket } from './stream-socket.ts'

/** Answers requests that Node's parser rejects: malformed HTTP, oversized headers, timeouts. */
export function answerMalformedRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  // A stream ignores the request timeout, because the parser still applies it to the request that
  // opened the stream.
  if (isStreamSocket(socket) && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return
  // A timeout before the first byte gets no answer. A busy gateway may not yet have read a request
  // that has arrived. The client would take the timeout error as the answer to that request.
  const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0
  if (error.code === 'ECONNRESET' || isStreamSocket(socket) || isUnused) socket.destroy()
  // Do not destroy an ended connection, because a client that still sends could lose the answer.
  else if (!socket.writableEnded) answerLast(socket, rawAnswer(malformed(error.code), unfinishedRequest(socket)))
}

/** Makes the gateway answer requests that Node would answer without an error envelope. */
export function takeOverNodeAnswers(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (request, socket: Socket) => {
    socket.on('error', () => socket.destroy())
    // Node stops reading here. The gateway continues to read, to detect when the client closes the
    // connection.
    socket.resume()
    answerLast(socket, rawAnswer(new GatewayError('MethodNotAllowed', { allow: ['GET', 'POST'] }), request))
  })
}

function malformed(code: string | undefined): GatewayError {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new GatewayError('PayloadTooLarge')
  const rule = code === 'HPE_HEADER_OVERFLOW' ? 'headerSize' : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'timeout' : 'http'
  return new GatewayError('ValidationFailed', { issues: [{ path: '', rule }] })
}
