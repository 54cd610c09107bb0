import type { FastifyPluginAsync, preHandlerAsyncHookHandler } from 'fastify'
import { createGrantCheck, requireAdvertised } from '../checks/grant.ts'
import { allowKnownOrigin, answerPreflight, createOriginCheck, type RequireOrigin } from '../checks/origin.ts'
import {
  refuseUrlCredentials,
  requireContentType,
  requireIdempotencyKey,
  requireMatchingKey,
  requireVersion,
} from '../checks/request-checks.ts'
import type { Config } from '../config.ts'
import type { GrantCache } from '../core/grant-cache.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { refuseQuery } from '../schemas/fields.ts'
import { readQueryNumbers, refuseUnknownBody } from '../schemas/validation.ts'
import { commandRoutes } from './commands.ts'
import { configRoutes } from './config.ts'
import { consentRoutes } from './consent.ts'
import { eventRoutes } from './events.ts'
import { formRoutes } from './forms.ts'
import { identityRoutes } from './identity.ts'
import { messageRoutes } from './messages.ts'
import type { RouteDeps } from './route-deps.ts'
import { sessionRoutes } from './sessions.ts'

export const WIDGET_PREFIX = '/api/integrations/v1/widget'

interface WidgetDeps extends Omit<RouteDeps, 'heartbeatSeconds'> {
  config: Config
  requireOrigin: RequireOrigin
  grants: GrantCache
  checkRate: preHandlerAsyncHookHandler
}

/**
 * The widget API. Its hooks are the checks of every route, in the order of the contract. The first
 * failed check determines the answer.
 */
export const widgetRoutes: FastifyPluginAsync<WidgetDeps> = async (app, deps) => {
  answerUnknownRoutes(app, async (request, reply) => {
    const preflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    if (preflight) await answerPreflight(deps.requireOrigin, reply)
    else await allowKnownOrigin(deps.requireOrigin, reply)
  })
  app.addHook('onRoute', refuseQuery)
  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.scoped) reply.header('cache-control', 'no-store')
  })

  app.addHook('onRequest', createOriginCheck(deps.requireOrigin))
  app.addHook('onRequest', requireVersion)
  app.addHook('onRequest', refuseUrlCredentials)
  app.addHook('onRequest', createGrantCheck(deps.grants, deps.refusals))
  app.addHook('onRequest', requireAdvertised)
  app.addHook('onRequest', requireContentType)
  app.addHook('onRequest', requireIdempotencyKey)
  app.addHook('preValidation', readQueryNumbers)
  app.addHook('preValidation', refuseUnknownBody)
  app.addHook('preHandler', requireMatchingKey)
  app.addHook('preHandler', deps.checkRate)

  // Pick single fields: `deps` also contains the prefix of this plugin, which would be added twice.
  const { core, batcher, streams, refusals, config } = deps
  const heartbeatSeconds = config.HEARTBEAT_SECONDS
  for (const routes of [
    configRoutes,
    sessionRoutes,
    consentRoutes,
    identityRoutes,
    messageRoutes,
    eventRoutes,
    formRoutes,
  ]) {
    await app.register(routes, { core, batcher, streams, refusals, heartbeatSeconds })
  }
  await app.register(commandRoutes, {
    core,
    uploadDeadlineMs: config.REQUEST_TIMEOUT_MS + config.CORE_DEADLINE_MS,
  })
}
