import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { createClient } from '@connectrpc/connect'
import type { Logger } from 'pino'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createAuthorizedTransport } from '../core-client/authorized-transport.ts'
import type { CorePool } from '../core-client/core-pool.ts'
import { tokenFault } from '../core-client/service-token.ts'
import type { Lookup } from '../platform/addresses/name-service.ts'
import { createResolver } from '../platform/addresses/resolve.ts'
import type { DeliveryConfig } from './config.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import { createSender } from './sender.ts'
import { createDeliveryWorker, type DeliveryWorker } from './worker.ts'

/** Maximum number of bytes that are read from the response of a destination. */
const responseMaxBytes = 65_536
const maxIdleConnections = 256

interface DeliveryOptions {
  config: DeliveryConfig
  cores: CorePool
  logger: Logger
  metrics?: DeliveryMetrics
  /** Looks up names of destinations. Default: the machine's DNS settings. Tests replace it. */
  lookup?: Lookup
  /** Certificate authorities (PEM) that are trusted instead of Node's. For tests. */
  ca?: string
}

/** Assembles a delivery worker. It has no database, and its service token is its only secret. */
export function createDelivery(options: DeliveryOptions): DeliveryWorker {
  const { config, cores, logger, metrics = createDeliveryMetrics(), lookup, ca } = options
  const workerId = `${hostname().slice(0, 40)}-${randomBytes(6).toString('hex')}`
  const sender = createSender({
    resolver: createResolver({ isAllowed: config.isAddressAllowed, lookup }),
    responseMaxBytes,
    maxIdle: maxIdleConnections,
    ca,
  })
  return createDeliveryWorker({
    followCores: ({ added, removed }) =>
      cores.follow({
        added: ({ url, transport }) =>
          added(url, createClient(LeadService, createAuthorizedTransport(transport, config.DELIVERY_TOKEN))),
        removed: ({ url }) => removed(url),
      }),
    sender,
    workerId,
    concurrency: config.DELIVERY_CONCURRENCY,
    perDestination: config.DELIVERY_PER_DESTINATION,
    graceMs: config.DELIVERY_GRACE_MS,
    acceptWithinMs: config.CORE_DEADLINE_MS,
    tokenFault: (code) =>
      tokenFault({ setting: 'DELIVERY_TOKEN', token: config.DELIVERY_TOKEN, scope: 'deliveries:work' }, code),
    // The worker id is also in claims, so that logs of worker and core can be correlated.
    logger: logger.child({ workerId }),
    metrics,
  })
}
