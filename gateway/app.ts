import type { Server } from 'node:http'
import fastify, {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { WIDGET_PREFIX } from '../contract/public-api.ts'
import type { CorePool } from '../core-client/core-pool.ts'
import { HEAD_MS, requireWholeHeads } from '../platform/http/bounded-server.ts'
import { queueRequests } from '../platform/http/request-queue.ts'
import { allowKnownOrigin } from './checks/origin.ts'
import type { Config } from './config.ts'
import { coreOf } from './core-calls/core-clients.ts'
import { describeApi } from './docs/api-document.ts'
import { docsRoutes, useDocsOrigin } from './docs/docs-routes.ts'
import { type GatewayError, invalid, toGatewayError, unavailable } from './errors.ts'
import { hubOf } from './events/event-hub.ts'
import { streamsOf } from './events/event-streams.ts'
import { type Clock, Gateway, systemClock } from './gateway.ts'
import { readClientAddresses } from './http/client-addresses.ts'
import { boundConnections } from './http/connections.ts'
import { answerFailures, sendFailure } from './http/failures.ts'
import { answerMalformedRequest, correlationIdOf, SECURITY_HEADERS, takeOverNodeAnswers } from './http/raw-answers.ts'
import { acceptJsonBodies } from './http/request-body.ts'
import { observeRequests } from './http/request-observation.ts'
import { answerUnknownRoutes, PARAM_MAX_LENGTH } from './http/unknown-routes.ts'
import { type Check, inOrder } from './in-order.ts'
import { sharedBucketsOf } from './limits/rate-limits.ts'
import { endReads } from './limits/reads.ts'
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts'
import { CONSOLE_SESSION_PREFIX, consoleSessionRoutes, providerCallbackRoute } from './routes/console-sessions.ts'
import { LEADS_PREFIX, leadRoutes } from './routes/leads.ts'
import { mailRoutes } from './routes/mails.ts'
import { pictureRoutes } from './routes/pictures.ts'
import { RPC_PREFIX, rpcRoutes } from './routes/rpc.ts'
import { consoleRoutes, type StaticFolders, widgetFileRoutes } from './routes/static-files.ts'
import { widgetRoutes } from './routes/widget.ts'
import { ajvOptions, validationError } from './schemas/validation.ts'

/** Maximum size of request line and headers together. */
const HEADERS_MAX_BYTES = 16_384

const refusedWhileClosing = [`${WIDGET_PREFIX}/events`, `${RPC_PREFIX}/`, '/readyz']

/** Serves the public JSON and SSE contract in front of the cores. The caller calls `listen`. */
export function createGateway(deps: {
  config: Config
  cores: CorePool
  logger: FastifyBaseLogger
  staticFolders?: StaticFolders
  metrics?: GatewayMetrics
  clock?: Clock
  random?: () => number
}): FastifyInstance {
  const { config, cores, logger, staticFolders = {}, clock = systemClock, random = Math.random } = deps
  const { metrics = createGatewayMetrics() } = deps
  const gateway = new Gateway({ config, cores, logger, metrics, clock, random })
  let closing = false

  const allowWidgetOrigin = async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.raw.url?.startsWith(`${WIDGET_PREFIX}/`)) await allowKnownOrigin(reply)
  }
  const app: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: correlationIdOf,
    trustProxy: trustedProxies(config),
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    http: { requireHostHeader: false, maxHeaderSize: HEADERS_MAX_BYTES },
    routerOptions: { maxParamLength: PARAM_MAX_LENGTH },
    ajv: ajvOptions,
    schemaErrorFormatter: validationError,
    clientErrorHandler: answerMalformedRequest,
    frameworkErrors: async (error, request, reply) => {
      reply.headers({ 'x-correlation-id': request.id, ...SECURITY_HEADERS })
      await allowWidgetOrigin(request, reply)
      const failure = toGatewayError(error)
      metrics.failures.inc({ code: failure.code })
      sendFailure(failure, reply)
    },
  })

  app.decorate('gateway', gateway)
  endReads(app)
  // A child logger costs more than all checks of a request, so lines about a request name its id themselves.
  app.setChildLoggerFactory(() => logger)
  app.decorateRequest('visitor', null)
  observeRequests(app)
  const setHeaders: Check = (request, reply) =>
    void reply.header('x-correlation-id', request.id).headers(SECURITY_HEADERS)
  const refuse = async (request: FastifyRequest, reply: FastifyReply, failure: GatewayError) => {
    await allowWidgetOrigin(request, reply)
    throw failure
  }
  // A stopping gateway carries out requests on accepted connections, because a proxy cannot know that they
  // should go elsewhere. It opens no stream and is not ready.
  const requireOpen: Check = (request, reply) =>
    closing && refusedWhileClosing.some((path) => request.raw.url?.startsWith(path))
      ? refuse(request, reply, unavailable())
      : undefined
  const requireHost: Check = (request, reply) => {
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return refuse(request, reply, invalid('', 'http'))
  }
  app.addHook('onRequest', inOrder([setHeaders, requireOpen, requireHost]))
  // An open connection would delay the stop.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close')
    done(null, payload)
  })
  app.addHook('onReady', async () => {
    await sharedBucketsOf(gateway)?.start()
    hubOf(gateway).start()
    streamsOf(gateway).start()
  })
  app.addHook('preClose', async () => {
    closing = true
    app.server.keepAliveTimeout = 1
    streamsOf(gateway).stop()
  })
  app.addHook('onClose', async () => {
    hubOf(gateway).stop()
    sharedBucketsOf(gateway)?.close()
  })

  answerFailures(app)
  acceptJsonBodies(app)
  requireWholeHeads(app.server, Math.min(HEAD_MS, config.REQUEST_TIMEOUT_MS))
  queueRequests(app.server)
  takeOverNodeAnswers(app)
  boundConnections(app)
  readClientAddresses(app)
  if (config.API_DOCS === 'on') {
    app.addHook('onRequest', useDocsOrigin)
    app.register(fastifyPlugin((root) => describeApi(root, WIDGET_PREFIX, LEADS_PREFIX)))
  }
  app.register(async (root) => {
    answerUnknownRoutes(root)
    root.get('/livez', (_request, reply) => answerHealthy(reply))
    root.get('/readyz', async (_request, reply) => {
      if (!(await coreOf(gateway).isReady())) throw unavailable()
      return answerHealthy(reply)
    })
    if (config.API_DOCS === 'on') await root.register(docsRoutes)
    const { console: consoleFolder, widget } = staticFolders
    if (consoleFolder && config.CONSOLE === 'on') await root.register(consoleRoutes, { folder: consoleFolder })
    if (widget) await root.register(widgetFileRoutes, { folder: widget })
  })
  app.register(leadRoutes, { prefix: LEADS_PREFIX })
  if (config.CONSOLE === 'on') {
    app.register(rpcRoutes, { prefix: RPC_PREFIX })
    app.register(consoleSessionRoutes, { prefix: CONSOLE_SESSION_PREFIX })
    app.register(providerCallbackRoute, { prefix: CONSOLE_SESSION_PREFIX })
  }
  app.register(mailRoutes, { prefix: '/mail' })
  app.register(pictureRoutes, { prefix: `${WIDGET_PREFIX}/pictures` })
  app.register(widgetRoutes, { prefix: WIDGET_PREFIX })
  return app
}

const answerHealthy = (reply: FastifyReply) => reply.header('cache-control', 'no-store').send({ status: 'ok' })

/** Converts `TRUST_PROXY`. A number of hops trusts that many of the nearest proxies. */
function trustedProxies({ TRUST_PROXY: hops }: Config): FastifyHttpOptions<Server>['trustProxy'] {
  return typeof hops === 'number' ? (_address: string, hop: number) => hop < hops : hops
}
