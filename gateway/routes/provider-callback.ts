import type { FastifyPluginAsync } from 'fastify'
import { cookieSecret, setCookie } from '../checks/console-session.ts'
import { type Check, inOrder } from '../checks/in-order.ts'
import type { CoreClients } from '../core-calls/core-clients.ts'
import { operatorError } from '../errors.ts'
import { callOptions } from '../route-deps.ts'
import { sessionCookie } from './console-sessions.ts'

/** Reasons that the console shows, by the public error code. */
const REASONS: Record<string, string> = { Unauthenticated: 'refused', PermissionDenied: 'denied' }

/**
 * GET /console/session/callback: the OpenID Connect provider sends the operator's browser here. The
 * answer is always a redirect, so that the code does not stay in the address or in the history.
 */
export const providerCallbackRoute: FastifyPluginAsync<{
  core: CoreClients
  checkRate: Check
  now: () => number
}> = async (app, { core, checkRate, now }) => {
  app.addHook('preHandler', inOrder([checkRate]))
  app.get('/callback', { config: { rate: 'rpc' } }, async (request, reply) => {
    reply.header('cache-control', 'no-store').header('cross-origin-resource-policy', 'same-origin')
    const addresses = ['https', 'http'].map((scheme) => `${scheme}://${request.host}`)
    const origins = addresses.filter((each) => URL.canParse(each)).map((each) => new URL(each))
    const origin = origins.find((each) => cookieSecret(request, 'sign_in', each) !== undefined)
    if (origin === undefined) return reply.redirect('/console/#sign-in-failed=refused', 303)
    const browserSecret = cookieSecret(request, 'sign_in', origin)!
    const parameters = request.raw.url!.split('?')[1] ?? ''
    setCookie(reply, 'sign_in', origin)
    try {
      const call = { parameters, browserSecret, origin: origin.origin }
      const answer = await core.console.finishProviderSignIn(call, callOptions(request))
      setCookie(reply, 'console', origin, sessionCookie(answer, now()))
      return reply.redirect('/console/#signed-in', 303)
    } catch (error) {
      const reason = REASONS[operatorError(error).code] ?? 'unavailable'
      return reply.redirect(`/console/#sign-in-failed=${reason}`, 303)
    }
  })
}
