import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { operatorAuthorization } from './workspace-session.ts'

/** Header that the console sends with each call. Forms and simple requests cannot send it. */
const CONSOLE_HEADER = 'x-service-console'
const SECRET = /^[\w-]{43}$/

/**
 * Returns the origin of the console's page. Throws `PermissionDenied` if the request does not come
 * from the script of a page of this host. Only such requests may use the cookie.
 */
export function consoleOrigin({ headers }: Pick<FastifyRequest, 'headers'>): URL {
  const { origin, 'sec-fetch-site': site = 'same-origin', [CONSOLE_HEADER]: marker } = headers
  const isConsole = origin !== undefined && URL.canParse(origin) && site === 'same-origin' && marker === '1'
  if (!isConsole) throw new GatewayError('PermissionDenied')
  return new URL(origin)
}

/**
 * Returns the name of the cookie. Browsers store a `__Host-` cookie only from this host and over
 * https, so another host of the domain cannot set it. Cookies of one host over http are shared by
 * all its ports, so their name has the port.
 */
function cookieName({ protocol, port }: URL): string {
  return protocol === 'https:' ? '__Host-service_console' : `service_console_${port || '80'}`
}

/** Returns the secret of the console session in the cookie, or undefined. */
export function consoleSecret(request: Pick<FastifyRequest, 'headers'>): string | undefined {
  const prefix = `${cookieName(consoleOrigin(request))}=`
  const found = (request.headers.cookie ?? '').split(/; */).find((pair) => pair.startsWith(prefix))
  const secret = found?.slice(prefix.length)
  return secret !== undefined && SECRET.test(secret) ? secret : undefined
}

/** Sets the cookie until the session ends. Without a session, deletes the cookie. */
export function setConsoleCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  session?: { secret: string; lifetimeSeconds: number },
): void {
  const origin = consoleOrigin(request)
  const { secret = '', lifetimeSeconds = 0 } = session ?? {}
  const attributes = ['Path=/', `Max-Age=${lifetimeSeconds}`, 'HttpOnly', 'SameSite=Strict']
  if (origin.protocol === 'https:') attributes.push('Secure')
  reply.header('set-cookie', `${cookieName(origin)}=${secret}; ${attributes.join('; ')}`)
}

/**
 * Returns the `Authorization` header for a core: the workspace session of the request, or the
 * console session of its cookie. Throws `Unauthenticated` if the request has neither, and
 * `PermissionDenied` if it has a cookie but does not come from the console.
 */
export function consoleAuthorization(request: Pick<FastifyRequest, 'headers'>): string {
  if (request.headers.authorization !== undefined || request.headers.cookie === undefined)
    return operatorAuthorization(request)
  const secret = consoleSecret(request)
  if (secret === undefined) throw new GatewayError('Unauthenticated')
  return `Console ${secret}`
}
