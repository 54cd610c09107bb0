import type { FastifyReply, FastifyRequest } from 'fastify'
import { decodeJwt } from 'jose'
import { GatewayError } from '../errors.ts'

/** The console sends this header with each call. Forms and simple requests cannot. */
const CONSOLE_HEADER = 'x-service-console'
const AUDIENCE = 'service.workspace'
const SERVICE_AUDIENCE = 'service.core'
const BOT_SCOPE = 'bots:act'
const BEARER = /^bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i
const SECRET = /^[\w-]{43}$/

type Headed = Pick<FastifyRequest, 'headers'>

/** Cookies: `console` is the session, `sign_in` the browser in which a sign-in at a provider began. */
type CookieKind = 'console' | 'sign_in'

/**
 * Returns the origin of the console's page. Throws `PermissionDenied` if the request does not come from
 * the script of a page of this host.
 */
export function consoleOrigin({ headers }: Headed): URL {
  const { origin, 'sec-fetch-site': site = 'same-origin', [CONSOLE_HEADER]: marker } = headers
  const isConsole = origin !== undefined && URL.canParse(origin) && site === 'same-origin' && marker === '1'
  if (!isConsole) throw new GatewayError('PermissionDenied')
  return new URL(origin)
}

/**
 * Returns a name with `__Host-`, which needs https: another host of the domain cannot set such a cookie.
 * All ports of a host share its cookies, so the name of an http cookie contains the port.
 */
function cookieName(kind: CookieKind, { protocol, port }: URL) {
  return protocol === 'https:' ? `__Host-service_${kind}` : `service_${kind}_${port || '80'}`
}

export function cookieSecret({ headers }: Headed, kind: CookieKind, origin: URL): string | undefined {
  const prefix = `${cookieName(kind, origin)}=`
  const found = (headers.cookie ?? '').split(/; */).find((pair) => pair.startsWith(prefix))
  const secret = found?.slice(prefix.length)
  return secret !== undefined && SECRET.test(secret) ? secret : undefined
}

export const consoleSecret = (request: Headed): string | undefined =>
  cookieSecret(request, 'console', consoleOrigin(request))

/**
 * Sets a cookie; without a secret, deletes it. The provider's redirect comes from another site, and
 * browsers send only `Lax` cookies with it.
 */
export function setCookie(
  reply: FastifyReply,
  kind: CookieKind,
  origin: URL,
  { secret = '', lifetimeSeconds = 0 }: { secret?: string; lifetimeSeconds?: number } = {},
) {
  const sameSite = kind === 'console' ? 'Strict' : 'Lax'
  const attributes = ['Path=/', `Max-Age=${lifetimeSeconds}`, 'HttpOnly', `SameSite=${sameSite}`]
  if (origin.protocol === 'https:') attributes.push('Secure')
  reply.header('set-cookie', `${cookieName(kind, origin)}=${secret}; ${attributes.join('; ')}`)
}

/**
 * Returns the `Authorization` header for a core: of the workspace session, or of the cookie's console
 * session. Throws `Unauthenticated` if the request has neither, and `PermissionDenied` for a cookie that
 * does not come from the console.
 */
export function consoleAuthorization(request: Headed): string {
  if (request.headers.authorization !== undefined || request.headers.cookie === undefined)
    return operatorAuthorization(request)
  const secret = consoleSecret(request)
  if (secret === undefined) throw new GatewayError('Unauthenticated')
  return `Console ${secret}`
}

/**
 * Returns the header to forward to a core, which alone can verify it. Throws `Unauthenticated` if it has a
 * service token, or anything else that is no workspace session.
 */
export function operatorAuthorization(request: Headed): string {
  const { token, audiences } = unverifiedToken(request)
  if (!audiences.includes(AUDIENCE)) throw new GatewayError('Unauthenticated')
  return `Bearer ${token}`
}

/** Returns the header of a bot to forward; undefined for other callers. */
export function botAuthorization(request: Headed): string | undefined {
  const { token, audiences, scopes } = unverifiedToken(request)
  const isBot = audiences.includes(SERVICE_AUDIENCE) && !audiences.includes(AUDIENCE) && scopes.includes(BOT_SCOPE)
  return isBot ? `Bearer ${token}` : undefined
}

function unverifiedToken({ headers }: Headed) {
  const token = BEARER.exec(headers.authorization ?? '')?.[1] ?? ''
  try {
    const { aud, scope } = decodeJwt(token)
    return { token, audiences: [aud].flat(), scopes: String(scope).split(' ') }
  } catch {
    return { token, audiences: [], scopes: [] }
  }
}
