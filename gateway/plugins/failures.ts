import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type GatewayError, type PublicErrorCode, toGatewayError } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { dropBody } from '../request-body.ts'

/** The grant or its session is at its end. */
const GRANT_ENDING_CODES: ReadonlySet<PublicErrorCode> = new Set([
  'GrantInvalid',
  'OriginMismatch',
  'OriginNotAllowed',
  'SessionExpired',
  'SessionRevoked',
  'SessionClosed',
  'VisitorBanned',
  'ConnectionDisabled',
])

/** Answers every failure of every route with the safe envelope (specification, section 2.5). */
export function answerFailures(app: FastifyInstance, bodyLimit: number, metrics: GatewayMetrics): void {
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const failure = await earliestFailure(toGatewayError(error), request)
    if (GRANT_ENDING_CODES.has(failure.code)) request.visitor?.forget()
    metrics.failures.inc({ code: failure.code })
    if (failure.rule.httpStatus >= 500) logFailure(failure, request)
    // Fastify closes the connection of a body it did not read; this one is read, or dropped, to its end.
    const limit = request.routeOptions.config.bodyMaxBytes ?? bodyLimit
    const isWhole = await dropBody(request.raw, limit)
    if (isWhole && !failure.details.closesConnection) reply.removeHeader('connection')
    else reply.header('connection', 'close')
    return sendFailure(failure, reply)
  })
}

/** The envelope, its status and the headers that go with it. */
export function sendFailure(failure: GatewayError, reply: FastifyReply): FastifyReply {
  const { httpStatus } = failure.rule
  reply.code(httpStatus).header('content-type', 'application/json').header('cache-control', 'no-store')
  if (failure.retryAfter !== undefined && (httpStatus === 429 || httpStatus === 503)) {
    reply.header('retry-after', String(failure.retryAfter))
  }
  if (httpStatus === 401) reply.header('www-authenticate', 'Bearer')
  if (failure.details.allow !== undefined) reply.header('allow', failure.details.allow.join(', '))
  return reply.serializer(JSON.stringify).send(failure.envelope(reply.request.id))
}

/**
 * A check of the gateway's own comes after those of the session. Where it fails on the strength of an authorisation
 * that is no longer fresh, a core is asked once more, so that a dead session is told so and not of its broken body.
 */
async function earliestFailure(failure: GatewayError, request: FastifyRequest): Promise<GatewayError> {
  const late = failure.details.decidedBy !== 'core' && failure.rule.httpStatus < 500
  if (!late || !request.visitor) return failure
  return request.visitor.confirm().then(() => failure, toGatewayError)
}

function logFailure(failure: GatewayError, request: FastifyRequest): void {
  if (failure.code === 'ServiceUnavailable') {
    request.log.warn({ code: failure.code }, 'request failed')
    return
  }
  const cause = failure.cause instanceof Error ? failure.cause : undefined
  // The message of a foreign error may quote what was sent; its name, code and stack's lines may not.
  const where = cause?.stack
    ?.split('\n')
    .filter((line) => line.startsWith('    at '))
    .slice(0, 5)
  const reason = cause !== undefined && 'code' in cause ? cause.code : undefined
  request.log.error({ code: failure.code, cause: cause?.name, reason, where }, 'request failed')
}
