import type { CallOptions } from '@connectrpc/connect'
import type { FastifyRequest } from 'fastify'
import type { Visitor } from '../checks/grant.ts'
import type { RefusalLimit } from '../checks/refusals.ts'
import type { Core } from '../core/core.ts'
import type { EventStreams } from '../events/event-streams.ts'
import type { Bounds } from '../schemas/fields.ts'
import type { SendBatcher } from '../send-batcher.ts'

/** What the routes are made of. */
export interface RouteDeps {
  core: Core
  batcher: SendBatcher
  streams: EventStreams
  refusals: RefusalLimit
  bounds: Bounds
}

/** Options of a call to the core on behalf of a request. */
export function callOptions(request: FastifyRequest): CallOptions {
  return { headers: { 'x-correlation-id': request.id } }
}

/** The visitor of a scoped request; the grant check has put it there. */
export function visitorOf(request: FastifyRequest): Visitor {
  if (request.visitor === null) throw new Error('the route is not scoped')
  return request.visitor
}
