import type { Logger } from 'pino'
import type { ClaimState } from '#proto/lead/v1/delivery_pb.js'
import type { CoreStream } from './core-stream.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { keyOf, type OpenDelivery } from './open-deliveries.ts'

/** Number of renewals in one lease time: more than one, so that a failed one is repeated before the lease ends. */
const renewalsPerLease = 4

/** Renews the leases of the deliveries that a worker holds. */
export function createLeaseRenewals({
  held,
  openStreams,
  metrics,
  logger,
  now,
}: {
  held: ReadonlyMap<string, OpenDelivery>
  openStreams: () => CoreStream[]
  metrics: Pick<DeliveryMetrics, 'renewals'>
  logger: Pick<Logger, 'warn'>
  now: () => number
}) {
  let turn = 0

  return {
    /**
     * Sends the due renewals over one stream, and an empty message over the others. The streams take
     * turns, so that a core that hangs does not stop all renewals.
     */
    sendDue(): void {
      const all = openStreams()
      const due = [...held.values()].filter(
        ({ leaseEndsAt, renewedAt, delivery: { leaseMs } }) =>
          leaseEndsAt > 0 && now() - renewedAt >= leaseMs / renewalsPerLease,
      )
      for (const each of all.length > 0 ? due : []) {
        each.renewedAt = now()
        each.renewingSince ??= now()
      }
      const renewals = due.map(({ delivery: { deliveryId, claimId } }) => ({ deliveryId, claimId }))
      turn += 1
      for (const [index, stream] of all.entries()) stream.send(index === turn % all.length ? { renewals } : {})
    },

    /** Extends the leases that a core has renewed, and marks the lost ones. */
    onAnswer(renewed: ClaimState[]): void {
      let lost = 0
      for (const state of renewed) {
        const each = held.get(keyOf(state))
        metrics.renewals.inc({ result: state.held ? 'held' : 'lost' })
        if (!each) continue
        const { renewingSince = 0, delivery } = each
        each.renewingSince = undefined
        if (state.held) each.leaseEndsAt = Math.max(each.leaseEndsAt, renewingSince + delivery.leaseMs)
        else if (!each.result) {
          each.leaseEndsAt = 0
          lost += 1
        }
      }
      if (lost > 0) logger.warn({ lost }, 'leases lost; other workers may send these deliveries again')
    },
  }
}
