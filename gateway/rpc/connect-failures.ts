import { Code, ConnectError } from '@connectrpc/connect'
import { codeToHttpStatus, endStreamToJson, errorToJson } from '@connectrpc/connect/protocol-connect'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { connectCodeOf } from '../../contract/errors.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { dropBody } from '../http/request-body.ts'

const END_STREAM_FLAG = 2

/** Answers failures in the Connect protocol with an `ErrorInfo` detail, as a core would. */
export function answerConnectFailures(app: FastifyInstance, bodyLimit: number): void {
  app.setErrorHandler(async (error, request, reply) => {
    const failure = toGatewayError(error)
    if (failure.rule.httpStatus >= 500) request.log.warn({ code: failure.code }, 'request failed')
    if (await dropBody(request.raw, bodyLimit)) reply.removeHeader('connection')
    else reply.header('connection', 'close')
    return sendConnectFailure(reply, failure)
  })
}

function sendConnectFailure(reply: FastifyReply, failure: GatewayError): FastifyReply {
  const error = connectErrorOf(failure)
  const type = reply.request.headers['content-type'] ?? ''
  // A streaming call gets its error inside a stream with status 200.
  if (isStreamType(type)) return reply.code(200).header('content-type', type).send(endOfStream(error))
  if (failure.code === 'Unauthenticated') reply.header('www-authenticate', 'Bearer')
  if (failure.retryAfter !== undefined) reply.header('retry-after', String(failure.retryAfter))
  if (failure.details.allow !== undefined) reply.header('allow', failure.details.allow.join(', '))
  const { httpStatus } = failure.rule
  const status = httpStatus === 405 || httpStatus === 415 ? httpStatus : codeToHttpStatus(error.code)
  return reply
    .code(status)
    .header('content-type', 'application/json')
    .serializer(JSON.stringify)
    .send(errorToJson(error, undefined))
}

const isStreamType = (contentType: string) => /^application\/connect\+(?:json|proto)$/i.test(contentType)

function connectErrorOf(failure: GatewayError): ConnectError {
  const { retryable, terminal } = failure.rule
  const { retryAfter } = failure
  const value = {
    code: failure.code,
    retryable,
    terminal,
    retryAfter,
    issues: failure.details.issues ?? [],
  }
  return new ConnectError(failure.code, codeOf(failure), undefined, [{ desc: ErrorInfoSchema, value }])
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

function codeOf({ code, rule }: GatewayError): Code {
  // The method does not exist, or operators may not call it.
  return code === 'NotFound' ? Code.Unimplemented : connectCodeOf(rule)
}
