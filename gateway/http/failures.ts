import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { stackFrames } from '../../platform/observability/stack-frames.ts'
import { grantsOf } from '../core-calls/grant-cache.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import { isRefusal } from '../limits/refusals.ts'
import { dropBody } from './request-body.ts'

/** Answers every failure with the error envelope (specification, section 2.5). */
export function answerFailures(app: FastifyInstance) {
  const { config, metrics } = app.gateway
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const failure = await earliestFailure(toGatewayError(error), request)
    // After a refusal, a cached authorization of the grant must not be used again.
    if (request.visitor && isRefusal(failure)) grantsOf(app.gateway).forget(request.visitor.credentials)
    metrics.failures.inc({ code: failure.code })
    if (failure.rule.httpStatus >= 500) logFailure(failure, request)
    await endBody(failure, reply, request.routeOptions.config.bodyMaxBytes ?? config.BODY_LIMIT_BYTES)
    return sendFailure(failure, reply)
  })
}

/** Reads an unread body, or Fastify would close the connection. */
export async function endBody({ details }: GatewayError, reply: FastifyReply, limit: number) {
  const isWhole = await dropBody(reply.request.raw, limit)
  if (isWhole && !details.closesConnection) reply.removeHeader('connection')
  else reply.header('connection', 'close')
}

export function sendFailure(failure: GatewayError, reply: FastifyReply): FastifyReply {
  const { httpStatus } = failure.rule
  reply.request.failureCode = failure.code
  reply.code(httpStatus).header('content-type', 'application/json').header('cache-control', 'no-store')
  if (failure.retryAfter !== undefined && (httpStatus === 429 || httpStatus === 503)) {
    reply.header('retry-after', String(failure.retryAfter))
  }
  if (httpStatus === 401) reply.header('www-authenticate', 'Bearer')
  if (failure.details.allow !== undefined) reply.header('allow', failure.details.allow.join(', '))
  return reply.serializer(JSON.stringify).send(failure.envelope(reply.request.id))
}

/**
 * Errors of the session come before those of later checks, but the cached authorization may be outdated. So
 * a core confirms the session before the gateway itself refuses: `SessionClosed` is answered even if the
 * request is also invalid.
 */
async function earliestFailure(failure: GatewayError, { visitor, id, routeOptions, server }: FastifyRequest) {
  const isLocal = failure.details.decidedBy !== 'core' && failure.rule.httpStatus < 500
  if (!isLocal || !visitor) return failure
  const { advertisedBy, expiredToo = false } = routeOptions.config
  try {
    const { capabilities } = await grantsOf(server.gateway).confirm(visitor.credentials, id, expiredToo)
    return advertisedBy && !capabilities?.[advertisedBy] ? new GatewayError('RouteNotAdvertised') : failure
  } catch (error) {
    return toGatewayError(error)
  }
}

function logFailure(failure: GatewayError, request: FastifyRequest) {
  if (failure.code === 'ServiceUnavailable') {
    request.log.warn({ correlationId: request.id, code: failure.code }, 'request failed')
    return
  }
  const cause = failure.cause instanceof Error ? failure.cause : undefined
  // The message of a library error may quote the request. Name, code and stack frames do not.
  const where = cause && stackFrames(cause).slice(0, 5)
  const reason = cause !== undefined && 'code' in cause ? cause.code : undefined
  const { id: correlationId, log } = request
  log.error({ correlationId, code: failure.code, cause: cause?.name, reason, where }, 'request failed')
}
