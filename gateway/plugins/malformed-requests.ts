import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { rawAnswer } from './raw-answer.ts'

/** Answers what Node's parser refuses before there is a request: broken HTTP, overlong headers, a request too slow. */
export function answerMalformedRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || hasBegunToAnswer(socket)) {
    socket.destroy()
    return
  }
  socket.end(rawAnswer(malformed(error.code)))
}

/** Hands to the routes what Node would otherwise answer itself, without an envelope. */
export function takeOverNodeAnswers(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (_request, socket: Socket) => {
    socket.on('error', () => socket.destroy())
    socket.end(rawAnswer(new GatewayError('MethodNotAllowed', { allow: ['GET', 'POST'] })))
  })
}

function malformed(code: string | undefined): GatewayError {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new GatewayError('PayloadTooLarge')
  const rule = code === 'HPE_HEADER_OVERFLOW' ? 'headerSize' : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'timeout' : 'http'
  return new GatewayError('ValidationFailed', { issues: [{ path: '', rule }] })
}

/** Node keeps the response that a socket is busy with in a field of its own; there is no public way to ask. */
function hasBegunToAnswer(socket: Socket): boolean {
  const { _httpMessage } = socket as Socket & { _httpMessage?: { headersSent: boolean } | null }
  return _httpMessage?.headersSent === true
}
