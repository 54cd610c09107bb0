import type { FastifyRequest } from 'fastify'
import { type Capabilities, type Credentials, grantsOf } from '../core-calls/grant-cache.ts'
import { GatewayError } from '../errors.ts'
import type { Check } from '../in-order.ts'
import { limitRefusals } from '../limits/refusals.ts'
import { idempotencyKeyOf } from './request-checks.ts'

export interface Visitor {
  credentials: Credentials
  sessionId: string
}

declare module 'fastify' {
  interface FastifyContextConfig {
    scoped?: boolean
    /** Whether the route accepts a grant of a closed session, for repeats of the call that closed it. */
    closedToo?: boolean
    /** Whether the route accepts an expired grant while its session can be renewed. */
    expiredToo?: boolean
    /** The route exists only for installations with this capability. */
    advertisedBy?: keyof Capabilities
    /** Whether a core answers a valid call also without the capability. */
    coreDecides?: boolean
  }
  interface FastifyRequest {
    visitor: Visitor | null
  }
}

const BEARER = /^bearer +(\S.*)$/i

export function visitorOf(request: FastifyRequest): Visitor {
  if (request.visitor === null) throw new Error('the route is not scoped')
  return request.visitor
}

/** Returns what a call to a core needs to act for the visitor once. */
export const operationOf = (request: FastifyRequest) => ({
  credentials: visitorOf(request).credentials,
  idempotencyKey: idempotencyKeyOf(request),
})

export const requireGrant: Check = (request) => {
  const { scoped, closedToo = false, expiredToo = false } = request.routeOptions.config
  if (!scoped) return
  const grants = grantsOf(request.server.gateway)
  const accessGrant = BEARER.exec(request.headers.authorization ?? '')?.[1] ?? ''
  const credentials = { accessGrant, origin: request.headers.origin! }
  const keep = ({ sessionId }: { sessionId: string }) => {
    request.visitor = { credentials, sessionId }
  }
  const known = grants.known(credentials, expiredToo)
  if (known !== undefined) return keep(known)
  const checked = limitRefusals(request, 'grant', `${credentials.origin} ${accessGrant}`, async () => {
    if (accessGrant === '') throw new GatewayError('GrantMissing')
    if (closedToo) return grants.authorizeClosedToo(credentials, request.id)
    return grants.authorize(credentials, request.id, expiredToo)
  })
  return checked.then(keep)
}

/**
 * Rejects with `RouteNotAdvertised`. A cached capability is enough, because the core checks it again.
 * Otherwise a core is asked, because the capability may be new. A call that may have closed its session
 * passes: the core answers a repeat as before.
 */
export const requireAdvertised: Check = (request) => {
  const { advertisedBy, closedToo, coreDecides } = request.routeOptions.config
  if (advertisedBy === undefined || closedToo || coreDecides) return
  const { credentials } = request.visitor!
  const grants = grantsOf(request.server.gateway)
  if (grants.known(credentials, false)?.capabilities?.[advertisedBy]) return
  return grants.confirm(credentials, request.id, false).then(({ capabilities }) => {
    if (!capabilities?.[advertisedBy]) throw new GatewayError('RouteNotAdvertised')
  })
}
