import type { CallOptions } from '@connectrpc/connect'
import type { FastifyRequest } from 'fastify'
import type { Visitor } from '../checks/grant.ts'
import type { RefusalLimit } from '../checks/refusals.ts'
import type { CoreClients } from '../core/core-clients.ts'
import type { EventStreams } from '../events/event-streams.ts'
import type { Bounds } from '../schemas/fields.ts'
import type { SendBatcher } from '../send-batcher.ts'

/** Dependencies of the routes. */
export interface RouteDeps {
  core: CoreClients
  batcher: SendBatcher
  streams: EventStreams
  refusals: RefusalLimit
  bounds: Bounds
}

/** Options of a call to the core on behalf of a request. */
export function callOptions(request: FastifyRequest): CallOptions {
  return { headers: { 'x-correlation-id': request.id } }
}

/** Returns the visitor that the grant check has set on a scoped request. */
export function visitorOf(request: FastifyRequest): Visitor {
  if (request.visitor === null) throw new Error('the route is not scoped')
  return request.visitor
}
