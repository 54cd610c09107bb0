import type { onRequestAsyncHookHandler } from 'fastify'
import type { Capabilities } from '../core/grant-cache.ts'
import { GatewayError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route exists only for installations with this capability. */
    advertisedBy?: keyof Capabilities
  }
}

/** Rejects routes that the installation does not advertise with `RouteNotAdvertised`. */
export const requireAdvertised: onRequestAsyncHookHandler = async (request) => {
  const { advertisedBy } = request.routeOptions.config
  if (advertisedBy === undefined) return
  // Asks the core, because capabilities may have changed since the grant was cached.
  const { capabilities } = await request.visitor!.confirm()
  if (!capabilities[advertisedBy]) throw new GatewayError('RouteNotAdvertised')
}
