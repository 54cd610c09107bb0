import type { FastifyReply, onRequestAsyncHookHandler } from 'fastify'
import type { Origins } from '../core/origins.ts'
import { GatewayError } from '../errors.ts'

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
 * First check: the `Origin` is one that some enabled installation allows, else `OriginNotAllowed`. Whether it is one of
 * the installation at hand, the core decides in the call.
 */
export function createOriginCheck(origins: Origins): onRequestAsyncHookHandler {
  return async (request, reply) => {
    reply.header('vary', 'Origin')
    const { origin } = request.headers
    if (origin === undefined || !(await origins.isAllowed(origin))) throw new GatewayError('OriginNotAllowed')
    allowOrigin(reply, origin)
  }
}

/** Lets a page read an answer that comes whatever its origin is: a 404, a 405, a bad URL. */
export async function allowKnownOrigin(origins: Origins, reply: FastifyReply): Promise<void> {
  reply.header('vary', 'Origin')
  const { origin } = reply.request.headers
  if (origin === undefined) return
  if (await origins.isAllowed(origin).catch(() => false)) allowOrigin(reply, origin)
}

/** Answers a preflight for an allowed origin, whatever the path: the page is to see the answer itself. */
export async function answerPreflight(origins: Origins, reply: FastifyReply): Promise<FastifyReply> {
  reply.header('vary', 'Origin')
  const { origin } = reply.request.headers
  if (origin === undefined || !(await origins.isAllowed(origin))) throw new GatewayError('OriginNotAllowed')
  allowOrigin(reply, origin)
  reply.header('access-control-allow-methods', METHODS)
  reply.header('access-control-allow-headers', REQUEST_HEADERS)
  reply.header('access-control-max-age', PREFLIGHT_MAX_AGE)
  return reply.code(204).send()
}
