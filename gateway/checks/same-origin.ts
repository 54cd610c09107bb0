import type { onRequestHookHandler } from 'fastify'
import { GatewayError } from '../errors.ts'

/**
 * Rejects requests of pages of another host with `PermissionDenied`. This is defence in depth: such
 * a page has no session to send, and without CORS headers it cannot read the answer.
 */
export const requireSameOrigin: onRequestHookHandler = (request, _reply, done) => {
  const { origin, 'sec-fetch-site': site } = request.headers
  const isForeign = site !== undefined && site !== 'same-origin'
  done(isForeign || !isHostOf(request.host, origin) ? new GatewayError('PermissionDenied') : undefined)
}

function isHostOf(host: string, origin: string | undefined): boolean {
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host.toLowerCase() === host.toLowerCase()
}
