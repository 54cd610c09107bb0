import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { validCorrelationId } from '../../contract/correlation-id.ts'
import { answerLast, unfinishedRequest } from '../../platform/http/request-queue.ts'
import { GatewayError, invalid } from '../errors.ts'
import { isStreamSocket } from './stream-socket.ts'

/** Defaults for answers that are data. Routes that serve pages override them. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  // Pages of other origins read these answers. CORS decides which origins.
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Returns the request's own id if it is well formed, else a new one. */
export function correlationIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-correlation-id']
  return (typeof given === 'string' && validCorrelationId(given)) || randomUUID()
}

/** Encodes a failure that is written to the connection itself. `request` is set if its headers were read. */
export function rawAnswer(failure: GatewayError, request?: IncomingMessage): string {
  const correlationId = correlationIdOf(request ?? { headers: {} })
  const body = JSON.stringify(failure.envelope(correlationId))
  const { retryAfter, details } = failure
  return [
    `HTTP/1.1 ${failure.rule.httpStatus} ${failure.code}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Correlation-Id: ${correlationId}`,
    ...Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`),
    'Cache-Control: no-store',
    ...(details.allow === undefined ? [] : [`Allow: ${details.allow.join(', ')}`]),
    ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** Answers requests that Node's parser rejects: malformed HTTP, oversized headers, timeouts. */
export function answerMalformedRequest(error: NodeJS.ErrnoException, socket: Socket) {
  // The parser still applies the timeout to the request that opened the stream.
  if (isStreamSocket(socket) && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return
  // A timeout before the first byte gets no answer: a busy gateway may not yet have read a request that has
  // arrived, and its client would take this as the answer.
  const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0
  if (error.code === 'ECONNRESET' || isStreamSocket(socket) || isUnused) socket.destroy()
  // A client that still sends could lose the answer if an ended connection were destroyed.
  else if (!socket.writableEnded) answerLast(socket, rawAnswer(malformed(error.code), unfinishedRequest(socket)))
}

/** Makes the gateway answer requests that Node would answer without an error envelope. */
export function takeOverNodeAnswers(app: FastifyInstance) {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (request, socket: Socket) => {
    socket.on('error', () => socket.destroy())
    // Node stops reading here. Reading on detects when the client closes.
    socket.resume()
    answerLast(socket, rawAnswer(new GatewayError('MethodNotAllowed', { allow: ['GET', 'POST'] }), request))
  })
}

function malformed(code: string | undefined) {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new GatewayError('PayloadTooLarge')
  const rule = code === 'HPE_HEADER_OVERFLOW' ? 'headerSize' : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'timeout' : 'http'
  return invalid('', rule)
}
