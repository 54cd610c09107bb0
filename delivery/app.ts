import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { createClient, type Transport } from '@connectrpc/connect'
import type { Logger } from 'pino'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createAuthorizedTransport } from '../core-client/authorized-transport.ts'
import type { CorePool } from '../core-client/core-pool.ts'
import { createFailoverTransport } from '../core-client/failover-transport.ts'
import { createTracedTransport } from '../core-client/traced-transport.ts'
import { createResolver, type Lookup } from '../platform/addresses/resolve.ts'
import type { DeliveryConfig } from './config.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import { createSender } from './sender.ts'
import { createDeliveryWorker, type DeliveryWorker } from './worker.ts'

export interface DeliveryOptions {
  config: DeliveryConfig
  cores: CorePool
  logger: Logger
  metrics?: DeliveryMetrics
  /** Defaults to the name service of the machine; replaced in tests. */
  lookup?: Lookup
  /** Authorities to trust instead of Node's, in PEM. For tests. */
  ca?: string
}

/** Assembles a delivery worker. It has no database, and its service token is its only secret. */
export function createDelivery(options: DeliveryOptions): DeliveryWorker {
  const { config, cores, logger, metrics = createDeliveryMetrics(), lookup, ca } = options
  const workerId = `${hostname().slice(0, 40)}-${randomBytes(6).toString('hex')}`
  const failover = createFailoverTransport({ cores, deadlineMs: config.CORE_DEADLINE_MS })
  const clientOf = (transport: Transport) =>
    createClient(LeadService, createTracedTransport(createAuthorizedTransport(transport, config.DELIVERY_TOKEN)))
  const sender = createSender({
    resolver: createResolver({ isAllowed: config.isAddressAllowed, lookup }),
    responseMaxBytes: config.DELIVERY_RESPONSE_MAX_BYTES,
    maxIdle: config.DELIVERY_IDLE_CONNECTIONS,
    ca,
  })
  return createDeliveryWorker({
    core: clientOf(failover),
    followCores: ({ added, removed }) =>
      cores.follow({
        added: ({ url, transport }) => added(url, clientOf(transport)),
        removed: ({ url }) => removed(url),
      }),
    sender,
    workerId,
    concurrency: config.DELIVERY_CONCURRENCY,
    perDestination: config.DELIVERY_PER_DESTINATION,
    waitMs: config.DELIVERY_CLAIM_WAIT_MS,
    graceMs: config.DELIVERY_GRACE_MS,
    answerWithinMs: config.CORE_DEADLINE_MS,
    // The same id as in claims, to correlate logs of worker and core.
    logger: logger.child({ workerId }),
    metrics,
  })
}
