import type { FastifyReply, FastifyRequest } from 'fastify'
import { createAnswerCache } from '../core-calls/answer-cache.ts'
import { coreOf } from '../core-calls/core-clients.ts'
import { GatewayError } from '../errors.ts'
import { perGateway } from '../gateway.ts'
import type { Check } from '../in-order.ts'
import { limitRefusals } from '../limits/refusals.ts'

const EXPOSED_HEADERS = 'X-Correlation-Id, Retry-After, Idempotency-Replayed'
const WIDGET_HEADERS =
  'Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Correlation-Id, X-Service-Widget-Version'
/**
 * Headers that monitoring scripts of the page add to each `fetch`. The browser would block a request
 * with a header that the preflight does not allow. Their values are ignored.
 */
const MONITORING_HEADERS =
  'traceparent, tracestate, baggage, sentry-trace, newrelic, x-datadog-origin, x-datadog-parent-id, x-datadog-sampling-priority, x-datadog-sampled, x-datadog-trace-id'
const METHODS = 'GET, HEAD, POST, DELETE'
const PREFLIGHT_MAX_AGE = '7200'
const ORIGIN_MAX_LENGTH = 512
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/
const DEADLINE_MS = 3_000
const ORIGINS_MAX = 10_000
/** How long an allowed origin is cached. */
const FRESH_MS = 5_000
/** How long its answer is used beyond that while no core is reachable. */
const STALE_MS = 1_000

const answersOf = perGateway(({ clock }) =>
  createAnswerCache<true>({ freshMs: FRESH_MS, staleMs: STALE_MS, maxSize: ORIGINS_MAX, now: clock.now }),
)

/**
 * Lets pages of this origin read the answer. Call it only for an origin that an installation
 * allows. `Timing-Allow-Origin` lets the widget read the protocol of the connection. The widget
 * limits the number of its streams over HTTP/1.1.
 */
function allowOrigin(reply: FastifyReply, origin: string) {
  reply.headers({
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED_HEADERS,
    'timing-allow-origin': origin,
  })
}

/** Hosts without user info, path and white space. */
const HOST = /^[^\s/?#@\\,]+$/

/**
 * Returns the `Origin` of a request, or an empty string. Browsers send no `Origin` with a `GET` of a
 * page of this host. The origin of such a request is its own scheme and host. It replaces the missing
 * header, so that all later checks use it.
 */
function originOf({ headers, method, protocol, host }: FastifyRequest) {
  const isOwn = headers['sec-fetch-site'] === 'same-origin' && (method === 'GET' || method === 'HEAD')
  if (headers.origin === undefined && isOwn && HOST.test(host)) {
    const own = URL.parse(`${protocol}://${host}`)
    if (own?.protocol === 'http:' || own?.protocol === 'https:') headers.origin = own.origin
  }
  return headers.origin ?? ''
}

/**
 * Returns the origin of the request if at least one enabled installation allows it. Returns a
 * promise if the answer is not cached. Rejects with `OriginNotAllowed`, or with `RateLimited` for
 * an address with too many refusals. A core later checks that the installation of this request
 * allows the origin.
 */
function requireOrigin(request: FastifyRequest) {
  const { gateway } = request.server
  const answers = answersOf(gateway)
  const origin = originOf(request)
  if (answers.fresh(origin)) return origin
  return limitRefusals(request, 'origin', origin, async () => {
    if (origin.length > ORIGIN_MAX_LENGTH || !ORIGIN_FORM.test(origin)) throw new GatewayError('OriginNotAllowed')
    await answers.ask(origin, async () => {
      const { allowed } = await coreOf(gateway).sessions.checkOrigin({ origin }, { timeoutMs: DEADLINE_MS })
      if (!allowed) throw new GatewayError('OriginNotAllowed')
      return true
    })
    return origin
  })
}

/** The first check of a request, which rejects unknown origins. */
export const checkOrigin: Check = (request, reply) => {
  // The widget sends another correlation id with each request of a session. So a service worker of the
  // page that stores every answer finds none for the next request.
  reply.header('vary', request.headers.authorization ? 'Origin, X-Correlation-Id' : 'Origin')
  const origin = requireOrigin(request)
  if (typeof origin === 'string') return allowOrigin(reply, origin)
  return origin.then((allowed) => allowOrigin(reply, allowed))
}

/** Lets pages of an allowed origin read errors sent before the origin check: 404, 405, bad URL. */
export async function allowKnownOrigin(reply: FastifyReply) {
  reply.header('vary', 'Origin')
  const { request } = reply
  if (originOf(request) === '') return
  try {
    allowOrigin(reply, await requireOrigin(request))
  } catch {
    // The origin is not allowed, so the answer gets no CORS headers.
  }
}

/**
 * Answers a preflight of an allowed origin for any path. Unknown paths are included, so that the
 * page can read their 404.
 */
export async function answerPreflight(reply: FastifyReply): Promise<FastifyReply> {
  reply.header('vary', 'Origin')
  allowOrigin(reply, await requireOrigin(reply.request))
  reply.header('access-control-allow-methods', METHODS)
  reply.header('access-control-allow-headers', `${WIDGET_HEADERS}, ${MONITORING_HEADERS}`)
  reply.header('access-control-max-age', PREFLIGHT_MAX_AGE)
  return reply.code(204).send()
}
