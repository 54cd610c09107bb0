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
import { createSlots } from '../platform/concurrency/slots.ts'
import { HEAD_MS, requireWholeHeads } from '../platform/http/bounded-server.ts'
import { queueRequests } from '../platform/http/request-queue.ts'
import { type Check, inOrder } from './checks/in-order.ts'
import { allowKnownOrigin, createRequireOrigin } from './checks/origin.ts'
import { createRateLimits } from './checks/rate-limits.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Config } from './config.ts'
import { createCoreClients } from './core-calls/core-clients.ts'
import { createGrantCache } from './core-calls/grant-cache.ts'
import { createOrigins } from './core-calls/origins.ts'
import { createSendBatcher } from './core-calls/send-batcher.ts'
import { describeApi } from './docs/api-document.ts'
import { docsRoutes, useDocsOrigin } from './docs/docs-routes.ts'
import { GatewayError, toGatewayError, unavailable } from './errors.ts'
import { createEventHub } from './events/event-hub.ts'
import { createEventStreams } from './events/event-streams.ts'
import { createPresenceRelay } from './events/presence-relay.ts'
import { boundConnections } from './http/connections.ts'
import { correlationIdOf } from './http/correlation.ts'
import { answerFailures, sendFailure } from './http/failures.ts'
import { readForwardedAddresses } from './http/forwarded-addresses.ts'
import { answerMalformedRequest, takeOverNodeAnswers } from './http/malformed-requests.ts'
import { acceptJsonBodies } from './http/request-body.ts'
import { deferRequestLogs } from './http/request-log.ts'
import { observeRequests } from './http/request-observation.ts'
import { SECURITY_HEADERS } from './http/security-headers.ts'
import { answerUnknownRoutes, PARAM_MAX_LENGTH } from './http/unknown-routes.ts'
import { warnOfUntrustedProxy } from './http/untrusted-proxy.ts'
import { createReadLimit } from './limits/reads.ts'
import { createSharedBuckets } from './limits/shared-rate-limiter.ts'
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts'
import { CONSOLE_SESSION_PREFIX, consoleSessionRoutes } from './routes/console-sessions.ts'
import { healthRoutes } from './routes/health.ts'
import { LEADS_PREFIX, leadRoutes } from './routes/leads.ts'
import { pictureRoutes } from './routes/pictures.ts'
import { providerCallbackRoute } from './routes/provider-callback.ts'
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
  const { config, cores, logger, staticFolders = {}, clock = systemClock(), random = Math.random } = deps
  const { metrics = createGatewayMetrics() } = deps
  const { now } = clock
  const budget = createSlots({ max: config.CORE_CALLS_MAX, waitingMax: 0 })
  const core = createCoreClients({
    cores,
    token: config.CORE_TOKEN,
    budget,
    deadlineMs: config.CORE_DEADLINE_MS,
    now,
    logger,
  })
  const origins = createOrigins({ core, now })
  const grants = createGrantCache({ core, now })
  const batcher = createSendBatcher({
    core,
    queueMax: config.SEND_QUEUE_MAX,
    waitMaxMs: config.CORE_DEADLINE_MS,
    now,
    metrics,
  })
  const presence = createPresenceRelay()
  const hub = createEventHub({ core, presence, clock, random, logger, metrics })
  const streams = createEventStreams({ hub, config, clock, random, logger, metrics })
  const sharedBuckets =
    config.RATE_LIMIT_REDIS_URL === ''
      ? undefined
      : createSharedBuckets({ url: config.RATE_LIMIT_REDIS_URL, now, logger })
  const { checkRate, refusals } = createRateLimits(config, { now, metrics, shared: sharedBuckets })
  const requireOrigin = createRequireOrigin(origins, refusals)
  let closing = false

  const allowWidgetOrigin = async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.raw.url?.startsWith(`${WIDGET_PREFIX}/`)) await allowKnownOrigin(requireOrigin, reply)
  }
  const app: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'correlationId' }),
    genReqId: correlationIdOf,
    trustProxy: trustedProxies(config),
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    http: {
      requireHostHeader: false,
      maxHeaderSize: HEADERS_MAX_BYTES,
    },
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

  const reads = createReadLimit(app, { waitMaxMs: config.CORE_DEADLINE_MS, clock, metrics })
  deferRequestLogs(app)
  app.decorateRequest('visitor', null)
  observeRequests(app, { metrics, trustTraceparent: config.TRUST_PROXY !== false })
  const setHeaders: Check = (request, reply) =>
    void reply.header('x-correlation-id', request.id).headers(SECURITY_HEADERS)
  const refuse = async (request: FastifyRequest, reply: FastifyReply, failure: GatewayError) => {
    await allowWidgetOrigin(request, reply)
    throw failure
  }
  // While the gateway stops, it still carries out requests on connections that it has accepted: a
  // proxy cannot know that they should go elsewhere. It opens no stream and is not ready.
  const requireOpen: Check = (request, reply) =>
    closing && refusedWhileClosing.some((path) => request.raw.url?.startsWith(path))
      ? refuse(request, reply, unavailable())
      : undefined
  const requireHost: Check = (request, reply) => {
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return refuse(request, reply, new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'http' }] }))
  }
  app.addHook('onRequest', inOrder([setHeaders, requireOpen, requireHost]))
  // While the gateway stops, each answer closes its connection, because an open connection would
  // delay the stop.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close')
    done(null, payload)
  })
  app.addHook('onReady', async () => {
    await sharedBuckets?.start()
    hub.start()
    streams.start()
  })
  app.addHook('preClose', async () => {
    closing = true
    app.server.keepAliveTimeout = 1
    streams.stop()
  })
  app.addHook('onClose', async () => {
    hub.stop()
    sharedBuckets?.close()
  })

  answerFailures(app, { bodyLimit: config.BODY_LIMIT_BYTES, grants, metrics })
  acceptJsonBodies(app, config.BODY_LIMIT_BYTES)
  requireWholeHeads(app.server, Math.min(HEAD_MS, config.REQUEST_TIMEOUT_MS))
  queueRequests(app.server)
  takeOverNodeAnswers(app)
  // Behind a trusted proxy, connections per address are not limited, because all visitors share the
  // addresses of the proxy.
  const perAddress =
    config.TRUST_PROXY === false ? Math.ceil(config.CONNECTIONS_PER_ADDRESS * config.RATE_LIMIT_FACTOR) : undefined
  boundConnections(app, { perAddress, clock })
  if (config.TRUST_PROXY === false) warnOfUntrustedProxy(app)
  else readForwardedAddresses(app)
  if (config.API_DOCS === 'on') {
    app.addHook('onRequest', useDocsOrigin)
    app.register(fastifyPlugin((root) => describeApi(root, WIDGET_PREFIX, LEADS_PREFIX)))
  }
  app.register(async (root) => {
    answerUnknownRoutes(root)
    await root.register(healthRoutes, { core })
    if (config.API_DOCS === 'on') await root.register(docsRoutes)
    const { console: consoleFolder, widget } = staticFolders
    if (consoleFolder && config.CONSOLE === 'on') await root.register(consoleRoutes, { folder: consoleFolder })
    if (widget) await root.register(widgetFileRoutes, { folder: widget })
  })
  app.register(leadRoutes, { prefix: LEADS_PREFIX, core, checkRate })
  if (config.CONSOLE === 'on') {
    app.register(rpcRoutes, { prefix: RPC_PREFIX, config, cores, budget, checkRate, reads })
    app.register(consoleSessionRoutes, { prefix: CONSOLE_SESSION_PREFIX, core, checkRate, now })
    app.register(providerCallbackRoute, { prefix: CONSOLE_SESSION_PREFIX, core, checkRate, now })
  }
  app.register(pictureRoutes, { prefix: `${WIDGET_PREFIX}/pictures`, core, now, checkRate })
  app.register(widgetRoutes, {
    prefix: WIDGET_PREFIX,
    config,
    core,
    now,
    requireOrigin,
    grants,
    refusals,
    batcher,
    streams,
    presence,
    checkRate,
    reads,
  })
  return app
}

/**
 * Converts `TRUST_PROXY` to Fastify's option. For a number of hops, returns a function that trusts
 * that many of the nearest proxies.
 */
function trustedProxies({ TRUST_PROXY: hops }: Config): FastifyHttpOptions<Server>['trustProxy'] {
  return typeof hops === 'number' ? (_address: string, hop: number) => hop < hops : hops
}
