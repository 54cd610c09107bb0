import type { FastifyPluginAsync } from 'fastify'
import { requireAdvertised, requireGrant } from '../checks/grant.ts'
import { allowKnownOrigin, answerPreflight, checkOrigin } from '../checks/origin.ts'
import {
  refuseUrlCredentials,
  requireContentType,
  requireIdempotencyKey,
  requireMatchingKey,
  requireVersion,
} from '../checks/request-checks.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { type Check, inOrder } from '../in-order.ts'
import { checkRate } from '../limits/rate-limits.ts'
import { enterRead } from '../limits/reads.ts'
import { refuseQuery } from '../schemas/fields.ts'
import { readQueryNumbers, refuseUnknownBody, useLineFeedsInBody } from '../schemas/validation.ts'
import { commandRoutes } from './commands.ts'
import { configRoutes } from './config.ts'
import { formRoutes } from './forms.ts'
import { messageRoutes } from './messages.ts'
import { sessionRoutes } from './sessions.ts'

const forbidStorage: Check = (request, reply) => {
  if (request.routeOptions.config.scoped) reply.header('cache-control', 'no-store')
}

const limitReads: Check = (request, reply) => {
  if (request.routeOptions.config.readsPages) return enterRead(request, reply, request.visitor!.sessionId)
}

/** The widget API. Its checks are in the order of the contract: the first that fails determines the answer. */
export const widgetRoutes: FastifyPluginAsync = async (app) => {
  answerUnknownRoutes(app, async (request, reply) => {
    const preflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    if (preflight) await answerPreflight(reply)
    else await allowKnownOrigin(reply)
  })
  app.addHook('onRoute', refuseQuery)
  const checks = [
    forbidStorage,
    checkOrigin,
    requireVersion,
    refuseUrlCredentials,
    requireGrant,
    requireAdvertised,
    requireContentType,
    requireIdempotencyKey,
  ]
  app.addHook('onRequest', inOrder(checks))
  app.addHook('preValidation', readQueryNumbers)
  app.addHook('preValidation', refuseUnknownBody)
  app.addHook('preValidation', useLineFeedsInBody)
  app.addHook('preHandler', inOrder([requireMatchingKey, checkRate, limitReads]))

  for (const routes of [configRoutes, sessionRoutes, messageRoutes, formRoutes, commandRoutes])
    await app.register(routes)
}
