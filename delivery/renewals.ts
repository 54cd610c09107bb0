import type { Client } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDelivery } from './open-deliveries.ts'

export interface Renewals {
  /** From now on its claim is renewed. */
  add(held: OpenDelivery): void
  /** A core has its result, or nobody will. */
  remove(held: OpenDelivery): void
  stop(): void
}

/** Looks that fall into one lease: a claim that one call fails to renew gets another. */
const looksInALease = 4
/** The most that the core renews at once. */
const batchMax = 1_000

/**
 * Keeps the claims of what is under way, until the core has the results. Most attempts end before their first renewal; only
 * what is slow costs calls, and all of it together one. So a lease can be short, and a dead worker's deliveries soon go on.
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
    timer = setTimeout(look, leaseMs / looksInALease)
  }

  function look() {
    timer = undefined
    const [any] = held
    if (any === undefined) return
    schedule(any.delivery.leaseMs)
    const due = [...held].filter(
      ({ leaseEndsAt, delivery: { leaseMs } }) => leaseEndsAt - now() <= leaseMs * (1 - 1 / looksInALease),
    )
    for (let from = 0; from < due.length; from += batchMax) void renew(due.slice(from, from + batchMax))
  }

  async function renew(batch: OpenDelivery[]) {
    const askedAt = now()
    // A core that is slow may still renew in time; meanwhile the next look asks again, usually another one.
    const timeoutMs = batch[0]?.delivery.leaseMs ?? 0
    const claims = batch.map(({ delivery: { deliveryId, claimId } }) => ({ deliveryId, claimId }))
    const answer = await core.renewClaims({ claims }, { timeoutMs }).catch(() => undefined)
    // Reports and claims meet the same failure and say so.
    if (answer === undefined) return metrics.renewals.inc({ result: 'failed' }, batch.length)
    let lost = 0
    for (const [index, each] of batch.entries()) {
      if (answer.renewed[index]?.held) each.leaseEndsAt = askedAt + each.delivery.leaseMs
      else if (held.delete(each)) {
        each.leaseEndsAt = 0
        lost += 1
      }
    }
    metrics.renewals.inc({ result: 'held' }, answer.renewed.filter(({ held }) => held).length)
    if (lost === 0) return
    metrics.renewals.inc({ result: 'lost' }, lost)
    logger.warn({ lost }, 'claims were lost')
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
