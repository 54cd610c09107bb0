import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { type DescMethod, type DescService, fromBinary, getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeToHttpStatus, endStreamToJson, errorToJson } from '@connectrpc/connect/protocol-connect'
import { fastifyHttpProxy } from '@fastify/http-proxy'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { type Admission, admission } from '#proto/access/v1/access_pb.js'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorService } from '#proto/operator/v1/operator_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { connectCodeOf } from '../../contract/errors.ts'
import type { CoreNode, Failure } from '../../core-client/core-pool.ts'
import type { CoreAnswer, CoreRequest } from '../../core-client/http-client.ts'
import { systemCodes, wasNeverSent } from '../../core-client/system-codes.ts'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { botAuthorization, consoleAuthorization } from '../checks/operator-session.ts'
import { keepPrivate, mediaTypeOf, refuseUrlCredentials, requireSameOrigin } from '../checks/request-checks.ts'
import { callBudgetOf } from '../core-calls/core-clients.ts'
import { GatewayError, invalid, toGatewayError, unavailable } from '../errors.ts'
import type { Gateway } from '../gateway.ts'
import { endBody } from '../http/failures.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { type Check, inOrder } from '../in-order.ts'
import { takeRate } from '../limits/rate-limits.ts'
import { enterRead, enterStream } from '../limits/reads.ts'

declare module 'fastify' {
  interface FastifyRequest {
    rpc: { method: DescMethod; authorization: string; rate: 'rpc' | 'bots' } | null
  }
}

export const RPC_PREFIX = '/rpc'

const SERVICES: DescService[] = [
  SessionService,
  MessagingService,
  CommandService,
  LeadService,
  PrivacyService,
  HookService,
  WorkspaceService,
  OperatorService,
  BotService,
  EventsService,
]

/** URL path, for example `/service.messaging.v1.MessagingService/SendAgentMessage`. */
const pathOf = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`

const isRepeatable = ({ idempotency }: DescMethod) => idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN

const isRead = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS

const isStream = ({ methodKind }: DescMethod) => methodKind === 'server_streaming'

/** How long a core may wait for events before it answers. */
const waitMaxMs = (method: DescMethod) => (method === EventsService.method.listEvents ? 30_000 : 0)

const methodsWith = (caller: keyof Admission & ('public' | 'bots')): ReadonlyMap<string, DescMethod> =>
  new Map(
    SERVICES.flatMap(({ methods }) => methods)
      .filter((method) => getOption(method, admission)[caller])
      .map((method) => [pathOf(method), method]),
  )

export const operatorMethods = methodsWith('public')

export const botMethods = methodsWith('bots')

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

type ReplyOptions = Parameters<FastifyReply['from']>[1]

interface ForwardedCall {
  method: DescMethod
  signal: AbortSignal
}

/** How long a stream may send no bytes: longer than the longest heartbeat interval of a core. */
const STREAM_SILENCE_MAX_MS = 330_000

/** Forwards calls with `reply.from` of `@fastify/http-proxy`, over the connections of the pool. */
function createCoreForwarder(gateway: Gateway) {
  const deadlineMs = gateway.config.CORE_DEADLINE_MS
  /** The call for which `reply.from` is running. It calls `request` before it returns. */
  let current: (ForwardedCall & { core: CoreNode }) | undefined

  function send(core: CoreNode, reply: FastifyReply, call: ForwardedCall, from: ReplyOptions): Promise<Readable> {
    return new Promise((resolve, reject) => {
      current = { ...call, core }
      reply.from(pathOf(call.method), {
        ...from,
        getUpstream: () => new URL(core.url).origin,
        onError: (_reply, { error }) => reject(error.cause ?? error),
        onResponse: (_request, _reply, answer) => resolve((answer as unknown as { stream: Readable }).stream),
      })
      current = undefined
    })
  }

  function classifyFailure(error: unknown, { method, signal }: ForwardedCall): Failure {
    if (signal.aborted) return 'abandoned'
    const isTimeout = systemCodes(error).includes('UND_ERR_HEADERS_TIMEOUT')
    return !isTimeout && (wasNeverSent(error) || isRepeatable(method)) ? 'repeatable' : 'lost'
  }

  return {
    /** The HTTP client of `@fastify/http-proxy`. */
    client: {
      request({ path, headers, body }: CoreRequest, done: (error: Error | null, answer?: CoreAnswer) => void) {
        const { core, method, signal } = current!
        const bodyTimeout = isStream(method) ? STREAM_SILENCE_MAX_MS : deadlineMs
        const headersTimeout = deadlineMs + waitMaxMs(method)
        core.request({ path, headers, body, signal, headersTimeout, bodyTimeout }).then(
          (answer) => done(null, answer),
          (error) => done(error),
        )
      },
    },
    /**
     * Resolves to the body of the answer, whose status and headers `reply` then has; fails over while the
     * call may be repeated. Rejects if no core answers.
     */
    forward: (reply: FastifyReply, call: ForwardedCall, from: ReplyOptions): Promise<Readable> =>
      callBudgetOf(gateway).run(() =>
        gateway.cores.call(
          (core) => send(core, reply, call, from),
          (error) => classifyFailure(error, call),
        ),
      ),
  }
}

const END_STREAM_FLAG = 2

function answerConnectFailures(app: FastifyInstance) {
  app.setErrorHandler(async (error, request, reply) => {
    const failure = toGatewayError(error)
    if (failure.rule.httpStatus >= 500) {
      const { id: correlationId, log } = request
      log.warn({ correlationId, code: failure.code }, 'request failed')
    }
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
