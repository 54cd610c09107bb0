import type { IncomingMessage } from 'node:http'
import { fromBinary } from '@bufbuild/protobuf'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import type { CorePool } from '../../core-client/core-pool.ts'
import { type CoreTlsSettings, coreTlsFiles } from '../../core-client/core-tls.ts'
import { traceparentOf } from '../../platform/observability/tracing.ts'
import { mediaTypeOf } from '../checks/content-type.ts'
import { requireSameOrigin } from '../checks/same-origin.ts'
import { refuseUrlCredentials } from '../checks/url-credentials.ts'
import { operatorAuthorization } from '../checks/workspace-session.ts'
import type { Config } from '../config.ts'
import type { CallBudget } from '../core/bounded-transport.ts'
import { GatewayError, unavailable } from '../errors.ts'
import { answerUnknownRoutes } from '../plugins/unknown-routes.ts'
import { readBody } from '../request-body.ts'
import { answerConnectFailures, connectErrorOf, isStreamType } from '../rpc/connect-failures.ts'
import { type CoreProxy, createCoreProxy } from '../rpc/core-proxy.ts'
import { createMessageStream, type MessageStream } from '../rpc/message-stream.ts'
import { type OperatorMethod, operatorMethods } from '../rpc/operator-methods.ts'

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

interface RpcDeps {
  config: Pick<Config, 'CORE_DEADLINE_MS' | 'BODY_LIMIT_BYTES' | keyof CoreTlsSettings>
  cores: CorePool
  budget: CallBudget
  checkRate: preHandlerAsyncHookHandler
}

/**
 * POST /rpc/{service}/{method}: the operators' methods of the internal services, for the console in
 * the browser. Connect protocol only. The core verifies the workspace session and authorises the
 * call.
 */
export const rpcRoutes: FastifyPluginAsync<RpcDeps> = async (app, { config, cores, budget, checkRate }) => {
  const methods = operatorMethods()
  const open = new Set<MessageStream>()
  const proxy = createCoreProxy({ cores, tls: coreTlsFiles(config), deadlineMs: config.CORE_DEADLINE_MS })
  app.addHook('preClose', async () => {
    for (const stream of open) stream.finish()
  })
  app.addHook('onClose', () => proxy.close())

  answerUnknownRoutes(app)
  answerConnectFailures(app, config.BODY_LIMIT_BYTES)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(CONTENT_TYPES, (_request, payload: IncomingMessage, done) =>
    readBody(payload, config.BODY_LIMIT_BYTES, done),
  )
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store').header('cross-origin-resource-policy', 'same-origin')
  })
  app.addHook('onRequest', requireSameOrigin)
  app.addHook('onRequest', refuseUrlCredentials)
  app.addHook('onRequest', async (request) => {
    operatorAuthorization(request)
    methodOf(request, methods)
  })
  app.addHook('preHandler', checkRate)

  app.post('/:service/:method', { config: { rate: 'rpc' } }, async (request, reply) => {
    const method = methodOf(request, methods)
    requireMessage(method, request)
    const answer = await budget.run(() => forward(proxy, method, request, reply))
    reply.code(answer.status)
    for (const name of ANSWER_HEADERS) {
      const value = answer.headers[name]
      if (value !== undefined) reply.header(name, value)
    }
    if (!isStreamType(String(answer.headers['content-type']))) return reply.send(answer.body)
    const stream = createMessageStream(answer.body, () => connectErrorOf(unavailable()))
    open.add(stream)
    stream.readable.once('close', () => open.delete(stream))
    return reply.send(stream.readable)
  })
}

function methodOf({ params }: FastifyRequest, methods: ReadonlyMap<string, OperatorMethod>): OperatorMethod {
  const { service, method } = params as { service: string; method: string }
  const found = methods.get(`/${service}/${method}`)
  if (found === undefined) throw new GatewayError('NotFound')
  return found
}

/**
 * Rejects a malformed binary message with `ValidationFailed`. A core would answer it with an
 * internal error. Compressed messages and streams are not checked here.
 */
function requireMessage({ input }: OperatorMethod, { headers, body }: FastifyRequest): void {
  if (mediaTypeOf(headers['content-type'] ?? '') !== 'application/proto' || headers['content-encoding']) return
  try {
    fromBinary(input, body as Buffer)
  } catch (cause) {
    throw new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'protobuf' }], cause })
  }
}

function forward(proxy: CoreProxy, method: OperatorMethod, request: FastifyRequest, reply: FastifyReply) {
  const disconnected = new AbortController()
  reply.raw.once('close', () => disconnected.abort())
  const given = REQUEST_HEADERS.flatMap((name): [string, string][] => {
    const value = request.headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  const traceparent = traceparentOf()
  const headers = {
    ...Object.fromEntries(given),
    authorization: operatorAuthorization(request),
    'x-correlation-id': request.id,
    ...(traceparent && { traceparent }),
  }
  return proxy.call({ method, headers, body: request.body as Buffer, signal: disconnected.signal })
}
