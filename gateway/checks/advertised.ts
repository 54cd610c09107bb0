import type { onRequestAsyncHookHandler } from 'fastify'
import type { Capabilities } from '../core/grants.ts'
import { GatewayError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The capability that must advertise the route. */
    advertisedBy?: keyof Capabilities
  }
}

/** Routes that an installation may not have: where it does not advertise them they are `RouteNotAdvertised`. */
export const requireAdvertised: onRequestAsyncHookHandler = async (request) => {
  const { advertisedBy } = request.routeOptions.config
  if (advertisedBy === undefined) return
  // As the core has it now: an installation's capabilities may have changed since the grant was first seen.
  const { capabilities } = await request.visitor!.confirm()
  if (!capabilities[advertisedBy]) throw new GatewayError('RouteNotAdvertised')
}
