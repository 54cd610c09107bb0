import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { Origins } from '../core/origins.ts'
import { GatewayError } from '../errors.ts'
import type { RefusalLimit } from './refusals.ts'

const EXPOSED_HEADERS = 'X-Correlation-Id, Retry-After, Idempotency-Replayed'
const REQUEST_HEADERS =
  'Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Correlation-Id, X-Service-Widget-Version'
const METHODS = 'GET, HEAD, POST, DELETE'
const PREFLIGHT_MAX_AGE = '7200'

/**
 * Lets a page of this origin read the answer. Only for an origin that some installation allows. `Timing-Allow-Origin` lets it
 * read the protocol of the connection: over HTTP/1.1 the widget limits its streams.
 */
function allowOrigin(reply: FastifyReply, origin: string): void {
  reply.header('access-control-allow-origin', origin)
  reply.header('access-control-expose-headers', EXPOSED_HEADERS)
  reply.header('timing-allow-origin', origin)
}

/**
 * Returns the request's `Origin` if some enabled installation allows it. Throws `OriginNotAllowed`, or `RateLimited` for an
 * address with too many refusals. Whether the installation at hand allows it, the core decides in the call.
 */
export type RequireOrigin = (request: FastifyRequest) => Promise<string>

export function createRequireOrigin(origins: Origins, refusals: RefusalLimit): RequireOrigin {
  return (request) => {
    const { origin = '' } = request.headers
    return refusals.check(request, 'origin', origin, async () => {
      if (origin === '' || !(await origins.isAllowed(origin))) throw new GatewayError('OriginNotAllowed')
      return origin
    })
  }
}

/** First check of a request. */
export function createOriginCheck(requireOrigin: RequireOrigin): onRequestAsyncHookHandler {
  return async (request, reply) => {
    reply.header('vary', 'Origin')
    allowOrigin(reply, await requireOrigin(request))
  }
}

/** Lets a page read an answer that does not depend on its origin: a 404, a 405, a bad URL. */
export async function allowKnownOrigin(requireOrigin: RequireOrigin, reply: FastifyReply): Promise<void> {
  reply.header('vary', 'Origin')
  const { request } = reply
  if (request.headers.origin === undefined) return
  const origin = await requireOrigin(request).catch(() => undefined)
  if (origin !== undefined) allowOrigin(reply, origin)
}

/** Answers a preflight for an allowed origin, for any path, so that the page can read the answer of the request itself. */
export async function answerPreflight(requireOrigin: RequireOrigin, reply: FastifyReply): Promise<FastifyReply> {
  reply.header('vary', 'Origin')
  allowOrigin(reply, await requireOrigin(reply.request))
  reply.header('access-control-allow-methods', METHODS)
  reply.header('access-control-allow-headers', REQUEST_HEADERS)
  reply.header('access-control-max-age', PREFLIGHT_MAX_AGE)
  return reply.code(204).send()
}
