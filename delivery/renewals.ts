import type { Client } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDelivery } from './open-deliveries.ts'

export interface Renewals {
  /** Starts renewing the lease. */
  add(held: OpenDelivery): void
  /** Stops renewing the lease. */
  remove(held: OpenDelivery): void
  stop(): void
}

/**
 * Number of renewal checks per lease time, so that a failed renewal is retried before the lease
 * ends.
 */
const checksPerLease = 4
/** Maximum number of leases per renewal call. */
const batchMax = 1_000

/**
 * Renews the leases of open deliveries until a core has their results. Most attempts end before
 * their first renewal. Leases of slow attempts are renewed in batches. With renewals, leases can be
 * short, so that other workers soon take over the deliveries of a crashed worker.
 */
export function createRenewals(options: {
  core: Pick<Client<typeof LeadService>, 'renewClaims'>
  metrics: DeliveryMetrics
  logger: Logger
  now: () => number
}): Renewals {
  const { core, metrics, logger, now } = options
  const held = new Set<OpenDelivery>()
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  function schedule(leaseMs: number) {
    if (stopped || timer !== undefined) return
    timer = setTimeout(renewDue, leaseMs / checksPerLease)
  }

  function renewDue() {
    timer = undefined
    const [any] = held
    if (any === undefined) return
    schedule(any.delivery.leaseMs)
    const due = [...held].filter(
      ({ leaseEndsAt, delivery: { leaseMs } }) => leaseEndsAt - now() <= leaseMs * (1 - 1 / checksPerLease),
    )
    for (let from = 0; from < due.length; from += batchMax) void renew(due.slice(from, from + batchMax))
  }

  async function renew(batch: OpenDelivery[]) {
    const sentAt = now()
    // The call may take the whole lease time, because a slow core may still renew in time. The next
    // check retries in parallel, usually on another core.
    const timeoutMs = batch[0]?.delivery.leaseMs ?? 0
    const claims = batch.map(({ delivery: { deliveryId, claimId } }) => ({ deliveryId, claimId }))
    const answer = await core.renewClaims({ claims }, { timeoutMs }).catch(() => undefined)
    // A failure is not logged, because reports and claims fail for the same reason and log it.
    if (answer === undefined) return metrics.renewals.inc({ result: 'failed' }, batch.length)
    let lost = 0
    for (const [index, each] of batch.entries()) {
      if (answer.renewed[index]?.held) each.leaseEndsAt = sentAt + each.delivery.leaseMs
      else if (held.delete(each)) {
        each.leaseEndsAt = 0
        lost += 1
      }
    }
    metrics.renewals.inc({ result: 'held' }, answer.renewed.filter(({ held }) => held).length)
    if (lost === 0) return
    metrics.renewals.inc({ result: 'lost' }, lost)
    logger.warn({ lost }, 'leases lost; other workers may send these deliveries again')
  }

  return {
    add(each) {
      held.add(each)
      schedule(each.delivery.leaseMs)
    },
    remove: (each) => void held.delete(each),
    stop() {
      stopped = true
      clearTimeout(timer)
      held.clear()
    },
  }
}
