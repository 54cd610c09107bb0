import type { onRequestAsyncHookHandler } from 'fastify'
import type { Authorization, Capabilities, Credentials, GrantCache } from '../core/grant-cache.ts'
import { GatewayError } from '../errors.ts'
import type { RefusalLimit } from '../limits/refusals.ts'

/** The authorized visitor of a request to a route with `scoped`. */
export interface Visitor {
  credentials: Credentials
  sessionId: string
  /** Returns a recent cached authorization or asks a core. Rejects if the core refuses. */
  confirm(): Promise<Authorization>
  /** Removes the grant from the cache. */
  forget(): void
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs an access grant. */
    scoped?: boolean
    /**
     * The route accepts a grant of a closed session, so that a client can retry the call that
     * closed the session.
     */
    closedToo?: boolean
    /** The route accepts an expired grant while its session can be renewed. */
    expiredToo?: boolean
    /** The route exists only for installations with this capability. */
    advertisedBy?: keyof Capabilities
  }
  interface FastifyRequest {
    visitor: Visitor | null
  }
}

const BEARER = /^bearer +(\S.*)$/i

/**
 * Checks that the grant of a `scoped` route is valid for the origin and belongs to a live session.
 */
export function createGrantCheck(grants: GrantCache, refusals: RefusalLimit): onRequestAsyncHookHandler {
  return async (request) => {
    const { scoped, closedToo = false, expiredToo = false } = request.routeOptions.config
    if (!scoped) return
    const accessGrant = BEARER.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const credentials = { accessGrant, origin: request.headers.origin! }
    const { sessionId } = await refusals.check(request, 'grant', `${credentials.origin} ${accessGrant}`, async () => {
      if (accessGrant === '') throw new GatewayError('GrantMissing')
      if (closedToo) return grants.authorizeClosedToo(credentials, request.id)
      return (expiredToo ? grants.authorizeExpiredToo : grants.authorize)(credentials, request.id)
    })
    request.visitor = {
      credentials,
      sessionId,
      confirm: () => grants.confirm(credentials, request.id, expiredToo),
      forget: () => grants.forget(credentials),
    }
  }
}

/** Rejects a request with `RouteNotAdvertised` if the installation does not advertise its route. */
export const requireAdvertised: onRequestAsyncHookHandler = async (request) => {
  const { advertisedBy } = request.routeOptions.config
  if (advertisedBy === undefined) return
  // Asks the core, because capabilities may have changed since the grant was cached.
  const { capabilities } = await request.visitor!.confirm()
  if (!capabilities[advertisedBy]) throw new GatewayError('RouteNotAdvertised')
}
