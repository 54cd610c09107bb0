import type { CallOptions } from '@connectrpc/connect'
import type { FastifyRequest } from 'fastify'
import type { Visitor } from './checks/grant.ts'
import type { CoreClients } from './core-calls/core-clients.ts'
import type { GrantCache } from './core-calls/grant-cache.ts'
import type { SendBatcher } from './core-calls/send-batcher.ts'
import type { EventStreams } from './events/event-streams.ts'
import type { PresenceRelay } from './events/presence-relay.ts'
import type { RefusalLimit } from './limits/refusals.ts'

/** Dependencies of the routes. */
export interface RouteDeps {
  core: CoreClients
  grants: GrantCache
  batcher: SendBatcher
  streams: EventStreams
  presence: PresenceRelay
  refusals: RefusalLimit
  now: () => number
  heartbeatSeconds: number
}

/** Options of a call to the core on behalf of a request. */
export function callOptions(request: FastifyRequest): CallOptions {
  return { headers: { 'x-correlation-id': request.id } }
}

/** Returns the visitor that the grant check has found. Only routes with `scoped` have one. */
export function visitorOf(request: FastifyRequest): Visitor {
  if (request.visitor === null) throw new Error('the route is not scoped')
  return request.visitor
}
