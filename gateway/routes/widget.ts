import type { FastifyPluginAsync } from 'fastify'
import { createAdvertisedCheck, createGrantCheck } from '../checks/grant.ts'
import { type Check, inOrder } from '../checks/in-order.ts'
import { allowKnownOrigin, answerPreflight, createOriginCheck, type RequireOrigin } from '../checks/origin.ts'
import {
  refuseUrlCredentials,
  requireContentType,
  requireIdempotencyKey,
  requireMatchingKey,
  requireVersion,
} from '../checks/request-checks.ts'
import type { Config } from '../config.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import type { ReadLimit } from '../limits/reads.ts'
import type { RouteDeps } from '../route-deps.ts'
import { refuseQuery } from '../schemas/fields.ts'
import { readQueryNumbers, refuseUnknownBody, useLineFeedsInBody } from '../schemas/validation.ts'
import { commandRoutes } from './commands.ts'
import { configRoutes } from './config.ts'
import { consentRoutes } from './consent.ts'
import { eventRoutes } from './events.ts'
import { formRoutes } from './forms.ts'
import { identityRoutes } from './identity.ts'
import { messageRoutes } from './messages.ts'
import { presenceRoutes } from './presence.ts'
import { ratingRoutes } from './ratings.ts'
import { sessionRoutes } from './sessions.ts'

interface WidgetDeps extends Omit<RouteDeps, 'heartbeatSeconds'> {
  config: Config
  requireOrigin: RequireOrigin
  checkRate: Check
  reads: ReadLimit
}

const forbidStorage: Check = (request, reply) => {
  if (request.routeOptions.config.scoped) reply.header('cache-control', 'no-store')
}

/**
 * The widget API. Every route has these checks, in the order of the contract. The first failed check
 * determines the answer.
 */
export const widgetRoutes: FastifyPluginAsync<WidgetDeps> = async (app, deps) => {
  answerUnknownRoutes(app, async (request, reply) => {
    const preflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    if (preflight) await answerPreflight(deps.requireOrigin, reply)
    else await allowKnownOrigin(deps.requireOrigin, reply)
  })
  app.addHook('onRoute', refuseQuery)
  // Pick single fields: `deps` also contains the prefix of this plugin, which would be added twice.
  const { core, grants, batcher, streams, presence, refusals, now, config } = deps
  const checks = [
    forbidStorage,
    createOriginCheck(deps.requireOrigin),
    requireVersion,
    refuseUrlCredentials,
    createGrantCheck(grants, refusals),
    createAdvertisedCheck(grants),
    requireContentType,
    requireIdempotencyKey,
  ]
  app.addHook('onRequest', inOrder(checks))
  app.addHook('preValidation', readQueryNumbers)
  app.addHook('preValidation', refuseUnknownBody)
  app.addHook('preValidation', useLineFeedsInBody)
  const limitReads: Check = (request, reply) => {
    if (request.routeOptions.config.readsPages) return deps.reads.enter(request, reply, request.visitor!.sessionId)
  }
  app.addHook('preHandler', inOrder([requireMatchingKey, deps.checkRate, limitReads]))

  const heartbeatSeconds = config.HEARTBEAT_SECONDS
  for (const routes of [
    configRoutes,
    sessionRoutes,
    consentRoutes,
    identityRoutes,
    messageRoutes,
    eventRoutes,
    presenceRoutes,
    ratingRoutes,
    formRoutes,
  ]) {
    await app.register(routes, { core, grants, batcher, streams, presence, refusals, now, heartbeatSeconds })
  }
  await app.register(commandRoutes, {
    core,
    uploadDeadlineMs: config.REQUEST_TIMEOUT_MS + config.CORE_DEADLINE_MS,
  })
}
