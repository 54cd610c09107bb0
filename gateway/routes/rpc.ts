import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { type DescMethod, fromBinary } from '@bufbuild/protobuf'
import { fastifyHttpProxy } from '@fastify/http-proxy'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { botAuthorization, consoleAuthorization } from '../checks/operator-session.ts'
import { keepPrivate, mediaTypeOf, refuseUrlCredentials, requireSameOrigin } from '../checks/request-checks.ts'
import { GatewayError, invalid, unavailable } from '../errors.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { type Check, inOrder } from '../in-order.ts'
import { takeRate } from '../limits/rate-limits.ts'
import { enterRead, enterStream } from '../limits/reads.ts'
import { answerConnectFailures } from '../rpc/connect-failures.ts'
import { createCoreForwarder } from '../rpc/core-forwarder.ts'
import { botMethods, isRead, isStream, operatorMethods, waitMaxMs } from '../rpc/forwarded-methods.ts'

declare module 'fastify' {
  interface FastifyRequest {
    rpc: { method: DescMethod; authorization: string; rate: 'rpc' | 'bots' } | null
  }
}

export const RPC_PREFIX = '/rpc'

const CONTENT_TYPES = ['application/json', 'application/proto', 'application/connect+json', 'application/connect+proto']
/** The only headers that are forwarded. A core must not trust proxy headers of clients. */
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
 * POST /rpc/{service}/{method} in the Connect protocol: methods of operators, for the console, and of bots.
 * The core authorizes the call.
 */
export const rpcRoutes: FastifyPluginAsync = async (app) => {
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
  const requireCall: Check = (request) => {
    request.rpc = callOf(request)
  }
  app.decorateRequest('rpc', null)
  const checks = [keepPrivate, requireSameOrigin, refuseUrlCredentials, requireCall]
  app.addHook('onRequest', inOrder(checks))
  const limitRate: Check = (request) => takeRate(request, request.rpc!.rate)
  const requireValidMessage: Check = (request) => requireMessage(request.rpc!.method, request)
  const limitReads: Check = (request, reply) => {
    const { method, authorization } = request.rpc!
    if (isStream(method) || waitMaxMs(method) > 0) return enterStream(reply, authorization)
    if (isRead(method)) return enterRead(request, reply, authorization)
  }
  app.addHook('preHandler', inOrder([limitRate, requireValidMessage, limitReads]))

  await app.register(fastifyHttpProxy, {
    // `forward` chooses the core for each call.
    upstream: '',
    undici: forwarder.client as never,
    httpMethods: ['POST'],
    routes: ['/:service/:method'],
    // The whole body is read, so that a failover can send it again.
    proxyPayloads: false,
    disableRequestLogging: true,
    // Forwards the canonical path, even if the client has percent-encoded it.
    preRewrite: (_url, params, prefix) => `${prefix}${methodPath(params)}`,
    async handler(request, reply, _path, hooks) {
      const disconnected = new AbortController()
      reply.raw.once('close', () => disconnected.abort())
      const { method } = request.rpc!
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

function methodPath(params: unknown) {
  const { service, method } = params as { service: string; method: string }
  return `/${service}/${method}`
}

function callOf(request: FastifyRequest): NonNullable<FastifyRequest['rpc']> {
  const bot = botAuthorization(request)
  const authorization = bot ?? consoleAuthorization(request)
  const method = (bot ? botMethods : operatorMethods).get(methodPath(request.params))
  if (method === undefined) throw new GatewayError('NotFound')
  return { method, authorization, rate: bot ? 'bots' : 'rpc' }
}

/**
 * Rejects a malformed binary message, which a core would answer with an internal error. Compressed
 * messages and streams are not checked.
 */
function requireMessage({ input }: DescMethod, { headers, body }: FastifyRequest) {
  if (mediaTypeOf(headers['content-type'] ?? '') !== 'application/proto' || headers['content-encoding']) return
  try {
    fromBinary(input, body as Buffer)
  } catch (cause) {
    throw invalid('', 'protobuf', { cause })
  }
}

function requestHeaders(request: Pick<FastifyRequest, 'headers' | 'id' | 'rpc'>): IncomingHttpHeaders {
  const traceparent = traceparentOf()
  return {
    ...pick(request.headers, REQUEST_HEADERS),
    authorization: request.rpc!.authorization,
    'x-correlation-id': request.id,
    ...(traceparent && { traceparent }),
  }
}

function pick(headers: IncomingHttpHeaders, names: string[]): IncomingHttpHeaders {
  return Object.fromEntries(names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]))
}
