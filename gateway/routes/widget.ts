import type { FastifyPluginAsync, preHandlerAsyncHookHandler } from 'fastify'
import { requireAdvertised } from '../checks/advertised.ts'
import { requireContentType } from '../checks/content-type.ts'
import { createGrantCheck } from '../checks/grant.ts'
import { requireIdempotencyKey, requireMatchingKey } from '../checks/idempotency.ts'
import { allowKnownOrigin, answerPreflight, createOriginCheck, type RequireOrigin } from '../checks/origin.ts'
import { refuseUrlCredentials } from '../checks/url-credentials.ts'
import { requireVersion } from '../checks/version.ts'
import type { Config } from '../config.ts'
import type { GrantCache } from '../core/grant-cache.ts'
import { answerUnknownRoutes } from '../plugins/unknown-routes.ts'
import { readQueryNumbers, refuseUnknownBody } from '../schemas/validation.ts'
import { commandRoutes } from './commands.ts'
import { configRoutes } from './config.ts'
import { eventRoutes } from './events.ts'
import { formRoutes } from './forms.ts'
import { identityRoutes } from './identity.ts'
import { messageRoutes } from './messages.ts'
import { pageContextRoutes } from './page-context.ts'
import type { RouteDeps } from './route-deps.ts'
import { sessionRoutes } from './sessions.ts'
import { typingRoutes } from './typing.ts'

export const WIDGET_PREFIX = '/api/integrations/v1/widget'

interface WidgetDeps extends Omit<RouteDeps, 'bounds'> {
  config: Config
  requireOrigin: RequireOrigin
  grants: GrantCache
  checkRate: preHandlerAsyncHookHandler
}

/**
 * The widget API. The hooks are the checks of every route. The first check that fails gives the
 * answer.
 */
export const widgetRoutes: FastifyPluginAsync<WidgetDeps> = async (app, deps) => {
  answerUnknownRoutes(app, async (request, reply) => {
    const preflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    if (preflight) await answerPreflight(deps.requireOrigin, reply)
    else await allowKnownOrigin(deps.requireOrigin, reply)
  })
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

  // Not passed whole: `deps` contains the prefix of this plugin, which would be added twice.
  const { core, batcher, streams, refusals, config } = deps
  const bounds = {
    bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
    pageContextSentMaxBytes: config.PAGE_CONTEXT_SENT_MAX_BYTES,
    historyPageMax: config.HISTORY_PAGE_MAX,
  }
  for (const routes of [
    configRoutes,
    sessionRoutes,
    identityRoutes,
    pageContextRoutes,
    messageRoutes,
    eventRoutes,
    typingRoutes,
    formRoutes,
  ]) {
    await app.register(routes, { core, batcher, streams, refusals, bounds })
  }
  await app.register(commandRoutes, {
    core,
    screenshotMaxBytes: config.SCREENSHOT_MAX_BYTES,
    uploadDeadlineMs: config.REQUEST_TIMEOUT_MS + config.CORE_DEADLINE_MS,
  })
}
