import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { type DescMethod, fromBinary } from '@bufbuild/protobuf'
import { fastifyHttpProxy } from '@fastify/http-proxy'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { consoleAuthorization } from '../checks/operator-session.ts'
import { mediaTypeOf, refuseUrlCredentials, requireSameOrigin } from '../checks/request-checks.ts'
import { GatewayError, unavailable } from '../errors.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { type Check, inOrder } from '../in-order.ts'
import { checkRate } from '../limits/rate-limits.ts'
import { enterRead, enterStream } from '../limits/reads.ts'
import { answerConnectFailures } from '../rpc/connect-failures.ts'
import { createCoreForwarder } from '../rpc/core-forwarder.ts'
import { isRepeatable, isStream, operatorMethods } from '../rpc/operator-methods.ts'

export const RPC_PREFIX = '/rpc'

const CONTENT_TYPES = ['application/json', 'application/proto', 'application/connect+json', 'application/connect+proto']
/** The only request headers that are forwarded. A core must not trust proxy headers of clients. */
const REQUEST_HEADERS = [
  'content-type',
  'content-encoding',
  'connect-protocol-version',
  'connect-timeout-ms',
  'connect-content-encoding',
]
const ANSWER_HEADERS = [
  'content-type',
  'content-length',
  'content-encoding',
  'connect-content-encoding',
  'www-authenticate',
]

/**
 * POST /rpc/{service}/{method}: the operators' methods of the internal services, for the console in
 * the browser. Connect protocol only. The core verifies the console session or workspace session and
 * authorizes the call.
 */
export const rpcRoutes: FastifyPluginAsync = async (app) => {
  const methods = operatorMethods()
  /** Streams that are being forwarded. */
  const open = new Set<Readable>()
  const forwarder = createCoreForwarder(app.gateway)
  // Clients see that their streams break off, and call again.
  app.addHook('preClose', async () => {
    for (const stream of open) stream.destroy()
  })

  const bodyLimit = app.gateway.config.BODY_LIMIT_BYTES
  answerUnknownRoutes(app)
  answerConnectFailures(app)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(CONTENT_TYPES, { parseAs: 'buffer', bodyLimit }, (_request, bytes, done) =>
    done(null, bytes),
  )
  const setHeaders: Check = (_request, reply) =>
    void reply.header('cache-control', 'no-store').header('cross-origin-resource-policy', 'same-origin')
  const requireOperator: Check = (request) => void consoleAuthorization(request)
  const requireMethod: Check = (request) => void methodOf(request, methods)
  const checks = [setHeaders, requireSameOrigin, refuseUrlCredentials, requireOperator, requireMethod]
  app.addHook('onRequest', inOrder(checks))
  const requireValidMessage: Check = (request) => requireMessage(methodOf(request, methods), request)
  const limitReads: Check = (request, reply) => {
    const method = methodOf(request, methods)
    if (isStream(method)) return enterStream(reply, consoleAuthorization(request))
    if (isRepeatable(method)) return enterRead(request, reply, consoleAuthorization(request))
  }
  app.addHook('preHandler', inOrder([checkRate, requireValidMessage, limitReads]))

  await app.register(fastifyHttpProxy, {
    // `forward` chooses the core for each call.
    upstream: '',
    undici: forwarder.client as never,
    httpMethods: ['POST'],
    routes: ['/:service/:method'],
    config: { rate: 'rpc' },
    // The parser above has read the whole body, so that a failover can send the body again.
    proxyPayloads: false,
    disableRequestLogging: true,
    // Forwards the canonical path of the method, even if the client has percent-encoded it.
    preRewrite: (_url, params, prefix) => `${prefix}${methodPath(params)}`,
    async handler(request, reply, _path, hooks) {
      const disconnected = new AbortController()
      reply.raw.once('close', () => disconnected.abort())
      const method = methodOf(request, methods)
      const call = { method, signal: disconnected.signal }
      const contentType = request.headers['content-type']!
      const body = await forwarder
        .forward(reply, call, { ...hooks, body: request.body, contentType })
        .catch((error) => Promise.reject(unavailable(error)))
      if (isStream(method)) {
        reply.header('x-accel-buffering', 'no')
        open.add(body)
        body.once('close', () => open.delete(body))
      }
      return reply.send(body)
    },
    replyOptions: {
      getUpstream: () => '',
      queryString: () => '',
      rewriteRequestHeaders: requestHeaders,
      rewriteHeaders: (headers) => pick(headers, ANSWER_HEADERS),
    },
  })
}

function methodPath(params: unknown): string {
  const { service, method } = params as { service: string; method: string }
  return `/${service}/${method}`
}

function methodOf({ params }: FastifyRequest, methods: ReadonlyMap<string, DescMethod>): DescMethod {
  const found = methods.get(methodPath(params))
  if (found === undefined) throw new GatewayError('NotFound')
  return found
}

/**
 * Rejects a malformed binary message with `ValidationFailed`. A core would answer it with an
 * internal error. Compressed messages and streams are not checked here.
 */
function requireMessage({ input }: DescMethod, { headers, body }: FastifyRequest): void {
  if (mediaTypeOf(headers['content-type'] ?? '') !== 'application/proto' || headers['content-encoding']) return
  try {
    fromBinary(input, body as Buffer)
  } catch (cause) {
    throw new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'protobuf' }], cause })
  }
}

function requestHeaders(request: Pick<FastifyRequest, 'headers' | 'id'>): IncomingHttpHeaders {
  const traceparent = traceparentOf()
  return {
    ...pick(request.headers, REQUEST_HEADERS),
    authorization: consoleAuthorization(request),
    'x-correlation-id': request.id,
    ...(traceparent && { traceparent }),
  }
}

function pick(headers: IncomingHttpHeaders, names: string[]): IncomingHttpHeaders {
  return Object.fromEntries(names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]))
}
