import { Code, ConnectError } from '@connectrpc/connect'
import { codeToHttpStatus, endStreamToJson, errorToJson } from '@connectrpc/connect/protocol-connect'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { connectCodeOf } from '../../contract/errors.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { endBody } from '../http/failures.ts'

const END_STREAM_FLAG = 2

export function answerConnectFailures(app: FastifyInstance) {
  app.setErrorHandler(async (error, request, reply) => {
    const failure = toGatewayError(error)
    if (failure.rule.httpStatus >= 500) request.log.warn({ code: failure.code }, 'request failed')
    await endBody(failure, reply, app.gateway.config.BODY_LIMIT_BYTES)
    return sendConnectFailure(reply, failure)
  })
}

function sendConnectFailure(reply: FastifyReply, failure: GatewayError) {
  const { retryable, terminal, httpStatus } = failure.rule
  const { code, retryAfter, details } = failure
  const value = { code, retryable, terminal, retryAfter, issues: details.issues ?? [] }
  // Also for a method that operators may not call.
  const connectCode = code === 'NotFound' ? Code.Unimplemented : connectCodeOf(failure.rule)
  const error = new ConnectError(code, connectCode, undefined, [{ desc: ErrorInfoSchema, value }])
  const type = reply.request.headers['content-type'] ?? ''
  // A streaming call gets its error inside a stream with status 200.
  if (/^application\/connect\+(?:json|proto)$/i.test(type))
    return reply.code(200).header('content-type', type).send(endOfStream(error))
  if (code === 'Unauthenticated') reply.header('www-authenticate', 'Bearer')
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter))
  if (details.allow !== undefined) reply.header('allow', details.allow.join(', '))
  const status = httpStatus === 405 || httpStatus === 415 ? httpStatus : codeToHttpStatus(error.code)
  return reply
    .code(status)
    .header('content-type', 'application/json')
    .serializer(JSON.stringify)
    .send(errorToJson(error, undefined))
}

/** Encodes the last frame of a stream (Connect protocol, «Streaming RPCs»). */
function endOfStream(error: ConnectError): Buffer {
  const json = Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined)))
  const frame = Buffer.alloc(5 + json.length)
  frame.writeUInt8(END_STREAM_FLAG, 0)
  frame.writeUInt32BE(json.length, 1)
  json.copy(frame, 5)
  return frame
}
