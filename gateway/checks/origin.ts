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
/** Monitoring scripts of pages add these to each `fetch`. A preflight without them would block the request. */
const MONITORING_HEADERS =
  'traceparent, tracestate, baggage, sentry-trace, newrelic, x-datadog-origin, x-datadog-parent-id, x-datadog-sampling-priority, x-datadog-sampled, x-datadog-trace-id'
const METHODS = 'GET, HEAD, POST, DELETE'
const PREFLIGHT_MAX_AGE = '7200'
const ORIGIN_MAX_LENGTH = 512
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/
const DEADLINE_MS = 3_000
const ORIGINS_MAX = 10_000
const FRESH_MS = 5_000
/** How long an expired answer is used while no core is reachable. */
const STALE_MS = 1_000

const answersOf = perGateway(({ clock }) =>
  createAnswerCache<true>({ freshMs: FRESH_MS, staleMs: STALE_MS, maxSize: ORIGINS_MAX, now: clock.now }),
)

/**
 * Lets pages of an origin read the answer, so it must be one that an installation allows.
 * `Timing-Allow-Origin` lets the widget see HTTP/1.1, where it limits its streams.
 */
function allowOrigin(reply: FastifyReply, origin: string) {
  reply.headers({
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED_HEADERS,
    'timing-allow-origin': origin,
  })
}

const HOST = /^[^\s/?#@\\,]+$/

/**
 * Returns the `Origin`, or an empty string. Browsers send none with a `GET` of a page of this host. Its own
 * origin then replaces the missing header for all later checks.
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
 * Returns the origin if an enabled installation allows it, as a promise if the answer is not cached.
 * Rejects with `OriginNotAllowed`, or with `RateLimited` for an address with too many refusals. A core
 * checks the installation of the request later.
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

export const checkOrigin: Check = (request, reply) => {
  // The widget sends a new correlation id each time, so a service worker that stores every answer never reuses one.
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
  } catch {}
}

/** Answers a preflight also for unknown paths, so that the page can read their 404. */
export async function answerPreflight(reply: FastifyReply): Promise<FastifyReply> {
  reply.header('vary', 'Origin')
  allowOrigin(reply, await requireOrigin(reply.request))
  reply.header('access-control-allow-methods', METHODS)
  reply.header('access-control-allow-headers', `${WIDGET_HEADERS}, ${MONITORING_HEADERS}`)
  reply.header('access-control-max-age', PREFLIGHT_MAX_AGE)
  return reply.code(204).send()
}
