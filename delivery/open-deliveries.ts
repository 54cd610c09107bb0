import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { AttemptReport, CoreStream } from './core-stream.ts'

/** A delivery that the worker has leased. */
export interface OpenDelivery {
  readonly delivery: ClaimedDelivery
  /**
   * End of the lease in milliseconds since 1970. Renewals move it; it is 0 after the lease is lost.
   */
  leaseEndsAt: number
  /** Time of the claim or of the last renewal. */
  renewedAt: number
  /** Time of the first renewal that no core has answered. */
  renewingSince?: number | undefined
  /** The stream of the core that sent the delivery. */
  readonly stream: CoreStream
  /** Result of the attempt, until a core has recorded it. */
  result?: AttemptReport
  /** The stream over which the result was sent. Unset if that stream has ended. */
  sentOver?: CoreStream | undefined
}

export const keyOf = ({ deliveryId, claimId }: { deliveryId: string; claimId: string }) => `${deliveryId} ${claimId}`

export type OpenDeliveries = ReturnType<typeof createOpenDeliveries>

/**
 * Limits the concurrent attempts of a worker. At most `concurrency` attempts run at once, and at
 * most `perDestination` per destination. A destination also gets at most a third of the free places,
 * so that a few hanging destinations never use all places.
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
    /** Adds a delivery. It waits until `next` returns it. */
    add(open: OpenDelivery) {
      const { destination } = open.delivery
      const queued = waiting.get(destination)
      if (queued) queued.push(open)
      else waiting.set(destination, [open])
    },
    /** Frees the place of a sent delivery. */
    finish: (destination: string) => change(destination, -1),
    /** Returns a waiting delivery that may be sent now. Takes the destinations in round robin. */
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
    /** Removes and returns the waiting deliveries that match. */
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
