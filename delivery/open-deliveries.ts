import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { AttemptReport, CoreStream } from './core-stream.ts'

export interface OpenDelivery {
  readonly delivery: ClaimedDelivery
  /** Milliseconds since 1970. Renewals move it; it is 0 after the lease is lost. */
  leaseEndsAt: number
  /** Time of the claim or the last renewal. */
  renewedAt: number
  /** Time of the first renewal without an answer. */
  renewingSince?: number
  readonly stream: CoreStream
  /** The result, until a core has recorded it. */
  result?: AttemptReport
  /** The stream that carries the result. Unset after its end. */
  sentOver?: CoreStream
}

export const keyOf = ({ deliveryId, claimId }: { deliveryId: string; claimId: string }) => `${deliveryId} ${claimId}`

export type OpenDeliveries = ReturnType<typeof createOpenDeliveries>

/**
 * Limits the concurrent attempts in all and per destination. A destination gets at most a third of the free
 * places, so that a few hanging ones never use all.
 */
export function createOpenDeliveries(options: { concurrency: number; perDestination: number }) {
  const sending = new Map<string, number>()
  /** Waiting deliveries per destination, in round-robin order. */
  const waiting = new Map<string, OpenDelivery[]>()
  let places = options.concurrency

  function change(destination: string, by: 1 | -1) {
    const now = (sending.get(destination) ?? 0) + by
    if (now === 0) sending.delete(destination)
    else sending.set(destination, now)
    places -= by
  }

  return {
    add(open: OpenDelivery) {
      const { destination } = open.delivery
      const queued = waiting.get(destination)
      if (queued) queued.push(open)
      else waiting.set(destination, [open])
    },
    finish: (destination: string) => change(destination, -1),
    /** Returns a delivery that may be sent now, of the destinations in turn. */
    next() {
      if (places < 1) return undefined
      const most = Math.min(options.perDestination, Math.max(1, Math.floor(places / 3)))
      for (const [destination, queued] of waiting) {
        if ((sending.get(destination) ?? 0) >= most) continue
        change(destination, 1)
        const open = queued.shift()
        waiting.delete(destination)
        if (queued.length > 0) waiting.set(destination, queued)
        return open
      }
      return undefined
    },
    dropWaiting(isDropped: (open: OpenDelivery) => boolean = () => true) {
      const dropped: OpenDelivery[] = []
      for (const [destination, queued] of waiting) {
        const { left = [], gone = [] } = Object.groupBy(queued, (open) => (isDropped(open) ? 'gone' : 'left'))
        dropped.push(...gone)
        if (left.length > 0) waiting.set(destination, left)
        else waiting.delete(destination)
      }
      return dropped
    },
  }
}
