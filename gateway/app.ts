import type { Server } from 'node:http'
import fastify, { type FastifyBaseLogger, type FastifyHttpOptions, type FastifyInstance, LogController } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import type { CorePool } from '../core-client/core-pool.ts'

import { allowKnownOrigin, createRequireOrigin } from './checks/origin.ts'
import { createRateLimits } from './checks/rate.ts'
import { type Clock, systemClock } from './clock.ts'
import type { Config } from './config.ts'
import { createCallBudget } from './core/bounded-transport.ts'
import { createCoreClients } from './core/core-clients.ts'
import { createGrantCache } from './core/grant-cache.ts'
import { createOrigins } from './core/origins.ts'
import { correlationIdOf } from './correlation.ts'
import { describeApi } from './docs/api-document.ts'
import { docsRoutes, useDocsOrigin } from './docs/docs-routes.ts'
import { GatewayError, toGatewayError, unavailable } from './errors.ts'
import { createEventHub } from './events/event-hub.ts'
import { createEventStreams } from './events/event-streams.ts'
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts'
import { boundConnections } from './plugins/connections.ts'
import { answerFailures, sendFailure } from './plugins/failures.ts'
import { answerMalformedRequest, takeOverNodeAnswers } from './plugins/malformed-requests.ts'
import { logRequests } from './plugins/request-log.ts'
import { countRequests } from './plugins/request-metrics.ts'
import { queueRequests } from './plugins/request-queue.ts'
import { traceRequests } from './plugins/request-span.ts'
import { SECURITY_HEADERS, setSecurityHeaders } from './plugins/security-headers.ts'
import { answerUnknownRoutes, PARAM_MAX_LENGTH } from './plugins/unknown-routes.ts'
import { warnOfUntrustedProxy } from './plugins/untrusted-proxy.ts'
import { acceptJsonBodies } from './request-body.ts'
import { healthRoutes } from './routes/health.ts'
import { LEADS_PREFIX, leadRoutes } from './routes/leads.ts'
import { RPC_PREFIX, rpcRoutes } from './routes/rpc.ts'
import { consoleRoutes, type StaticFolders, widgetFileRoutes } from './routes/static-files.ts'
import { WIDGET_PREFIX, widgetRoutes } from './routes/widget.ts'
import { ajvOptions, validationError } from './schemas/validation.ts'
import { createSendBatcher } from './send-batcher.ts'
import { createSharedBuckets } from './shared-rate-limiter.ts'

/** How often Node checks connections for requests that take too long to arrive. */
const CONNECTIONS_CHECK_MS = 1_000

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
  const budget = createCallBudget(config.CORE_CALLS_MAX)
  const core = createCoreClients({ cores, token: config.CORE_TOKEN, budget, deadlineMs: config.CORE_DEADLINE_MS, now })
  const origins = createOrigins({ core, freshMs: config.ORIGIN_FRESH_MS, max: config.ORIGINS_MAX, now })
  const grants = createGrantCache({
    core,
    max: config.GRANTS_MAX,
    freshMs: config.GRANT_FRESH_MS,
    recheckMs: config.GRANT_RECHECK_MS,
    now,
  })
  const batcher = createSendBatcher({
    core,
    rpcsMax: config.SEND_RPCS_MAX,
    queueMax: config.SEND_QUEUE_MAX,
    waitMaxMs: config.CORE_DEADLINE_MS,
    now,
    metrics,
  })
  const hub = createEventHub({ core, clock, random, logger, metrics, orphanMs: config.STREAM_ORPHAN_SECONDS * 1000 })
  const streams = createEventStreams({ hub, config, clock, random, metrics })
  const sharedBuckets =
    config.RATE_LIMIT_REDIS_URL === undefined
      ? undefined
      : createSharedBuckets({ url: config.RATE_LIMIT_REDIS_URL, now, logger })
  const { checkRate, refusals } = createRateLimits(config, { now, metrics, shared: sharedBuckets })
  const requireOrigin = createRequireOrigin(origins, refusals)
  let closing = false

  const app: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'correlationId' }),
    genReqId: correlationIdOf,
    trustProxy: trustedProxies(config),
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    http: {
      requireHostHeader: false,
      maxHeaderSize: config.HEADERS_MAX_BYTES,
      headersTimeout: Math.min(config.HEADERS_TIMEOUT_MS, config.REQUEST_TIMEOUT_MS),
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    },
    routerOptions: { maxParamLength: PARAM_MAX_LENGTH },
    ajv: ajvOptions,
    schemaErrorFormatter: validationError,
    clientErrorHandler: answerMalformedRequest,
    frameworkErrors: async (error, request, reply) => {
      reply.headers({ 'x-correlation-id': request.id, ...SECURITY_HEADERS })
      if (request.raw.url?.startsWith(`${WIDGET_PREFIX}/`)) await allowKnownOrigin(requireOrigin, reply)
      const failure = toGatewayError(error)
      metrics.failures.inc({ code: failure.code })
      sendFailure(failure, reply)
    },
  })

  app.decorateRequest('visitor', null)
  traceRequests(app, { trustTraceparent: config.TRUST_PROXY !== false })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-correlation-id', request.id)
    if (closing) throw unavailable()
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      throw new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'http' }] })
    }
  })
  // A kept-alive connection would keep the gateway from stopping.
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

  answerFailures(app, config.BODY_LIMIT_BYTES, metrics)
  acceptJsonBodies(app, config.BODY_LIMIT_BYTES)
  queueRequests(app.server)
  takeOverNodeAnswers(app)
  // Behind a trusted proxy all visitors share the addresses of the proxy.
  const perAddress =
    config.TRUST_PROXY === false ? Math.ceil(config.CONNECTIONS_PER_ADDRESS * config.RATE_LIMIT_FACTOR) : undefined
  boundConnections(app, { perAddress, clock })
  if (config.TRUST_PROXY === false) warnOfUntrustedProxy(app)
  logRequests(app)
  countRequests(app, metrics)
  setSecurityHeaders(app)
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
  if (config.CONSOLE === 'on') app.register(rpcRoutes, { prefix: RPC_PREFIX, config, cores, budget, checkRate })
  app.register(widgetRoutes, {
    prefix: WIDGET_PREFIX,
    config,
    core,
    requireOrigin,
    grants,
    refusals,
    batcher,
    streams,
    checkRate,
  })
  return app
}

/** Fastify has no setting for a number of hops. */
function trustedProxies({ TRUST_PROXY: hops }: Config): FastifyHttpOptions<Server>['trustProxy'] {
  return typeof hops === 'number' ? (_address: string, hop: number) => hop < hops : hops
}
