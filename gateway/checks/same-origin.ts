import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

/**
 * A page of another host is refused, `PermissionDenied`, whatever it brings. It could do no harm without a session, which
 * no browser adds by itself, and it could not read the answer without CORS, which there is none of; it is refused all the same.
 */
export const requireSameOrigin: onRequestHookHandler = (request, _reply, done) => {
  const { origin, 'sec-fetch-site': site } = request.headers
  const foreign = site !== undefined && site !== 'same-origin'
  done(foreign || !isOf(request.host, origin) ? new GatewayError('PermissionDenied') : undefined)
}

function isOf(host: string, origin: string | undefined): boolean {
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host.toLowerCase() === host.toLowerCase()
}
