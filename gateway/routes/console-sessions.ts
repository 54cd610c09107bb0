import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { ConsoleSession, SignInResponse } from '#proto/console/v1/console_pb.js'
import { consoleOrigin, consoleSecret, cookieSecret, setCookie } from '../checks/operator-session.ts'
import { keepPrivate, refuseUrlCredentials, requireContentType, requireSameOrigin } from '../checks/request-checks.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { timeOf } from '../core-calls/proto-values.ts'
import { asOperator, operatorError } from '../errors.ts'
import { type Check, inOrder } from '../in-order.ts'
import { takeRate } from '../limits/rate-limits.ts'
import { refuseQuery, Strict } from '../schemas/fields.ts'

export const CONSOLE_SESSION_PREFIX = '/console/session'

const ATTEMPT_SECONDS = 600

/** Reasons that the console shows, by the public error code. */
const REASONS: Record<string, string> = { Unauthenticated: 'refused', PermissionDenied: 'denied' }

const limitRate: Check = (request) => takeRate(request, 'rpc')

const oneText = (name: string, maxLength: number) => Strict({ [name]: Type.String({ maxLength }) })
const SignInBody = Strict({
  link: Type.Optional(Type.String({ maxLength: 256 })),
  token: Type.Optional(Type.String({ maxLength: 8_192 })),
  displayName: Type.Optional(Type.String({ maxLength: 512 })),
  workspaceName: Type.Optional(Type.String({ maxLength: 512 })),
})
const LinkBody = oneText('link', 256)
const MailBody = oneText('mail', 512)
const PasskeyBody = oneText('response', 16_384)

/**
 * POST /console/session/…: signs operators in and out. The secret is only in a cookie that scripts cannot
 * read, and pages of other sites cannot use these routes.
 */
export const consoleSessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { console: operators } = coreOf(app.gateway)
  app.addHook('onRoute', refuseQuery)
  const requireConsole: Check = (request) => void consoleOrigin(request)
  const checks = [keepPrivate, requireSameOrigin, requireConsole, refuseUrlCredentials, requireContentType]
  app.addHook('onRequest', inOrder(checks))
  app.addHook('preHandler', inOrder([limitRate]))

  app.post('/sign-in', { schema: { body: SignInBody } }, async (request, reply) => {
    const { link, token = '', ...names } = request.body
    const credential =
      link === undefined
        ? { case: 'workspaceSession' as const, value: token }
        : { case: 'linkSecret' as const, value: link }
    const replacedSecret = consoleSecret(request) ?? ''
    const signIn = { credential, ...names, replacedSecret }
    const answer = await operators.signIn(signIn, callOptions(request)).catch(asOperator)
    return signedIn(reply, answer)
  })

  app.post('/options', async (request) => {
    const { provider, mail } = await operators.getSignInOptions({}, callOptions(request))
    return { provider, mail }
  })

  app.post('/link', { schema: { body: LinkBody } }, async (request) => {
    const { link: linkSecret } = request.body
    const found = await operators.getSignInLink({ linkSecret }, callOptions(request)).catch(asOperator)
    const { workspaceName, name, firstOwner, invitation } = found
    return { workspaceName, name, firstOwner, invitation }
  })

  app.post('/mail', { schema: { body: MailBody } }, async (request, reply) => {
    await operators.mailSignInLink({ mail: request.body.mail }, callOptions(request)).catch(asOperator)
    return reply.code(204).send()
  })

  app.post('/passkey/begin', async (request, reply) => {
    const origin = consoleOrigin(request)
    const begun = await operators.beginPasskeySignIn({ origin: origin.origin }, callOptions(request))
    setCookie(reply, 'sign_in', origin, { secret: begun.browserSecret, lifetimeSeconds: ATTEMPT_SECONDS })
    return { options: begun.optionsJson }
  })

  app.post('/passkey', { schema: { body: PasskeyBody } }, async (request, reply) => {
    const origin = consoleOrigin(request)
    const finish = {
      responseJson: request.body.response,
      browserSecret: cookieSecret(request, 'sign_in', origin) ?? '',
      replacedSecret: consoleSecret(request) ?? '',
    }
    const answer = await operators.finishPasskeySignIn(finish, callOptions(request)).catch(asOperator)
    return signedIn(reply, answer)
  })

  app.post('/provider', async (request, reply) => {
    const origin = consoleOrigin(request)
    const begin = { origin: origin.origin, replacedSecret: consoleSecret(request) ?? '' }
    const { url, browserSecret } = await operators.beginProviderSignIn(begin, callOptions(request))
    setCookie(reply, 'sign_in', origin, { secret: browserSecret, lifetimeSeconds: ATTEMPT_SECONDS })
    return { url }
  })

  // Without a session the answer is 204, because browsers report 401 as an error of the page.
  app.post('/current', async (request, reply) => {
    const sessionSecret = consoleSecret(request)
    if (sessionSecret === undefined) return reply.code(204).send()
    try {
      const { session } = await operators.getConsoleSession({ sessionSecret }, callOptions(request))
      return toAnswer(session)
    } catch (error) {
      const failure = operatorError(error)
      if (failure.code !== 'Unauthenticated') throw failure
      return reply.code(204).send()
    }
  })

  app.post('/sign-out', async (request, reply) => {
    const sessionSecret = consoleSecret(request)
    if (sessionSecret !== undefined) await operators.signOut({ sessionSecret }, callOptions(request))
    setCookie(reply, 'console', consoleOrigin(request))
    return reply.code(204).send()
  })
}

/**
 * GET /console/session/callback: the OpenID Connect provider sends the browser here. The answer is a
 * redirect, so that the code does not stay in the history.
 */
export const providerCallbackRoute: FastifyPluginAsync = async (app) => {
  app.addHook('preHandler', inOrder([limitRate, keepPrivate]))
  app.get('/callback', async (request, reply) => {
    const addresses = ['https', 'http'].map((scheme) => `${scheme}://${request.host}`)
    const origins = addresses.filter((each) => URL.canParse(each)).map((each) => new URL(each))
    const origin = origins.find((each) => cookieSecret(request, 'sign_in', each) !== undefined)
    if (origin === undefined) return reply.redirect('/console/#sign-in-failed=refused', 303)
    const browserSecret = cookieSecret(request, 'sign_in', origin)!
    const parameters = request.raw.url!.split('?')[1] ?? ''
    setCookie(reply, 'sign_in', origin)
    try {
      const call = { parameters, browserSecret, origin: origin.origin }
      const answer = await coreOf(app.gateway).console.finishProviderSignIn(call, callOptions(request))
      setSessionCookie(reply, origin, answer)
      return reply.redirect('/console/#signed-in', 303)
    } catch (error) {
      const reason = REASONS[operatorError(error).code] ?? 'unavailable'
      return reply.redirect(`/console/#sign-in-failed=${reason}`, 303)
    }
  })
}

type SignedIn = Pick<SignInResponse, 'sessionSecret' | 'session'>

/** Sets a cookie that ends with the session. */
function setSessionCookie(reply: FastifyReply, origin: URL, { sessionSecret: secret, session }: SignedIn) {
  const leftMs = Date.parse(timeOf(session?.expiresAt)) - reply.server.gateway.clock.now()
  setCookie(reply, 'console', origin, { secret, lifetimeSeconds: Math.max(1, Math.floor(leftMs / 1000)) })
}

function signedIn(reply: FastifyReply, answer: SignedIn) {
  setSessionCookie(reply, consoleOrigin(reply.request), answer)
  return toAnswer(answer.session)
}

function toAnswer(session: ConsoleSession | undefined) {
  if (session === undefined) throw new Error('the answer of the core has no session')
  const { consoleSessionId: id, workspaceId, operator, displayName, scopes, expiresAt, avatarUrl, account } = session
  return { id, workspaceId, operator, displayName, scopes, expiresAt: timeOf(expiresAt), avatarUrl, account }
}
