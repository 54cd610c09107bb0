import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ConsoleSession, SignInResponse } from '#proto/console/v1/console_pb.js'
import { consoleOrigin, consoleSecret, cookieSecret, setCookie } from '../checks/console-session.ts'
import { type Check, inOrder } from '../checks/in-order.ts'
import { refuseUrlCredentials, requireContentType, requireSameOrigin } from '../checks/request-checks.ts'
import type { CoreClients } from '../core-calls/core-clients.ts'
import { timeOf } from '../core-calls/proto-values.ts'
import { operatorError } from '../errors.ts'
import { callOptions } from '../route-deps.ts'
import { refuseQuery } from '../schemas/fields.ts'

export const CONSOLE_SESSION_PREFIX = '/console/session'

const ATTEMPT_SECONDS = 600

const SignInBody = Type.Object(
  {
    link: Type.Optional(Type.String({ maxLength: 256 })),
    token: Type.Optional(Type.String({ maxLength: 8_192 })),
    displayName: Type.Optional(Type.String({ maxLength: 512 })),
    workspaceName: Type.Optional(Type.String({ maxLength: 512 })),
  },
  { additionalProperties: false },
)
const oneText = (name: string, maxLength: number) =>
  Type.Object({ [name]: Type.String({ maxLength }) }, { additionalProperties: false })
const LinkBody = oneText('link', 256)
const MailBody = oneText('mail', 512)
const PasskeyBody = oneText('response', 16_384)

/**
 * POST /console/session/…: signs operators of the console in and out. The session's secret is only
 * in a cookie that scripts cannot read. Pages of other sites cannot use these routes.
 */
export const consoleSessionRoutes: FastifyPluginAsyncTypebox<{
  core: CoreClients
  checkRate: Check
  now: () => number
}> = async (app, { core, checkRate, now }) => {
  app.addHook('onRoute', refuseQuery)
  const setHeaders: Check = (_request, reply) =>
    void reply.header('cache-control', 'no-store').header('cross-origin-resource-policy', 'same-origin')
  const requireConsole: Check = (request) => void consoleOrigin(request)
  const checks = [setHeaders, requireSameOrigin, requireConsole, refuseUrlCredentials, requireContentType]
  app.addHook('onRequest', inOrder(checks))
  app.addHook('preHandler', inOrder([checkRate]))
  const config = { rate: 'rpc' } as const

  function signedIn(request: FastifyRequest, reply: FastifyReply, answer: SignInResponse) {
    setCookie(reply, 'console', consoleOrigin(request), sessionCookie(answer, now()))
    return toAnswer(answer.session)
  }

  app.post('/sign-in', { schema: { body: SignInBody }, config }, async (request, reply) => {
    const { link, token = '', ...names } = request.body
    const credential =
      link === undefined
        ? { case: 'workspaceSession' as const, value: token }
        : { case: 'linkSecret' as const, value: link }
    const replacedSecret = consoleSecret(request) ?? ''
    const answer = await core.console
      .signIn({ credential, ...names, replacedSecret }, callOptions(request))
      .catch(asOperator)
    return signedIn(request, reply, answer)
  })

  app.post('/options', { config }, async (request) => {
    const { provider, mail } = await core.console.getSignInOptions({}, callOptions(request))
    return { provider, mail }
  })

  app.post('/link', { schema: { body: LinkBody }, config }, async (request) => {
    const { link: linkSecret } = request.body
    const found = await core.console.getSignInLink({ linkSecret }, callOptions(request)).catch(asOperator)
    const { workspaceName, name, firstOwner, invitation } = found
    return { workspaceName, name, firstOwner, invitation }
  })

  app.post('/mail', { schema: { body: MailBody }, config }, async (request, reply) => {
    await core.console.mailSignInLink({ mail: request.body.mail }, callOptions(request)).catch(asOperator)
    return reply.code(204).send()
  })

  app.post('/passkey/begin', { config }, async (request, reply) => {
    const origin = consoleOrigin(request)
    const begun = await core.console.beginPasskeySignIn({ origin: origin.origin }, callOptions(request))
    setCookie(reply, 'sign_in', origin, { secret: begun.browserSecret, lifetimeSeconds: ATTEMPT_SECONDS })
    return { options: begun.optionsJson }
  })

  app.post('/passkey', { schema: { body: PasskeyBody }, config }, async (request, reply) => {
    const origin = consoleOrigin(request)
    const finish = {
      responseJson: request.body.response,
      browserSecret: cookieSecret(request, 'sign_in', origin) ?? '',
      replacedSecret: consoleSecret(request) ?? '',
    }
    const answer = await core.console.finishPasskeySignIn(finish, callOptions(request)).catch(asOperator)
    return signedIn(request, reply, answer)
  })

  app.post('/provider', { config }, async (request, reply) => {
    const origin = consoleOrigin(request)
    const begin = { origin: origin.origin, replacedSecret: consoleSecret(request) ?? '' }
    const { url, browserSecret } = await core.console.beginProviderSignIn(begin, callOptions(request))
    setCookie(reply, 'sign_in', origin, { secret: browserSecret, lifetimeSeconds: ATTEMPT_SECONDS })
    return { url }
  })

  // Without a session the answer is 204, because browsers report 401 as an error of the page.
  app.post('/current', { config }, async (request, reply) => {
    const sessionSecret = consoleSecret(request)
    if (sessionSecret === undefined) return reply.code(204).send()
    try {
      const { session } = await core.console.getConsoleSession({ sessionSecret }, callOptions(request))
      return toAnswer(session)
    } catch (error) {
      const failure = operatorError(error)
      if (failure.code !== 'Unauthenticated') throw failure
      return reply.code(204).send()
    }
  })

  app.post('/sign-out', { config }, async (request, reply) => {
    const sessionSecret = consoleSecret(request)
    if (sessionSecret !== undefined) await core.console.signOut({ sessionSecret }, callOptions(request))
    setCookie(reply, 'console', consoleOrigin(request))
    return reply.code(204).send()
  })
}

/** Returns the cookie of a new session. It ends with the session. */
export function sessionCookie(
  { sessionSecret: secret, session }: Pick<SignInResponse, 'sessionSecret' | 'session'>,
  now: number,
) {
  const expiresAt = Date.parse(timeOf(session?.expiresAt))
  return { secret, lifetimeSeconds: Math.max(1, Math.floor((expiresAt - now) / 1000)) }
}

function asOperator(error: unknown): never {
  throw operatorError(error)
}

function toAnswer(session: ConsoleSession | undefined) {
  if (session === undefined) throw new Error('the answer of the core has no session')
  const { consoleSessionId: id, workspaceId, operator, displayName, scopes, expiresAt, avatarUrl, account } = session
  return { id, workspaceId, operator, displayName, scopes, expiresAt: timeOf(expiresAt), avatarUrl, account }
}
