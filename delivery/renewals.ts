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

/** Renewal checks per lease, so that a failed renewal is retried before the lease ends. */
const checksPerLease = 4
/** Most leases per renewal call. */
const batchMax = 1_000

/**
 * Renews the leases of open deliveries until a core has their results. Most attempts end before
 * their first renewal, and slow ones are renewed in batches. So leases can be short, and other
 * workers soon take over the deliveries of a dead worker.
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
    // A slow core may still renew in time. Meanwhile the next check retries, usually on another
    // core.
    const timeoutMs = batch[0]?.delivery.leaseMs ?? 0
    const claims = batch.map(({ delivery: { deliveryId, claimId } }) => ({ deliveryId, claimId }))
    const answer = await core.renewClaims({ claims }, { timeoutMs }).catch(() => undefined)
    // Not logged: reports and claims fail in the same way and log it.
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
