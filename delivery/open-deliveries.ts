import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { Context } from '../platform/observability/tracing.ts'

/** A delivery that the worker has leased. */
export interface OpenDelivery {
  readonly delivery: ClaimedDelivery
  /**
   * End of the lease in milliseconds since 1970. Renewals move it; it is 0 after the lease is lost.
   */
  leaseEndsAt: number
  /** Trace context of the claim that returned the delivery. */
  readonly claimedIn?: Context
}

/**
 * Tracks the deliveries of a worker and limits its concurrent attempts. At most `concurrency`
 * attempts run at once, and at most `perDestination` per destination. A destination also gets at
 * most a third of the free places, so that a few hanging destinations never use all places.
 */
export interface OpenDeliveries {
  /** Number of attempts that may start now. */
  places(): number
  /** Number of waiting deliveries whose destination is below its limit. */
  ready(): number
  /** Number of running and waiting deliveries per destination. Claims contain these numbers. */
  underWay(): Record<string, number>
  /** Destinations with `perDestination` running and waiting deliveries or more. */
  full(): Set<string>
  /** Returns true if a destination has `perDestination` running and waiting deliveries or more. */
  anyFull(): boolean
  /**
   * Adds a delivery. Returns true if it may be sent now. Otherwise the delivery waits until `next`
   * returns it.
   */
  add(open: OpenDelivery): boolean
  /**
   * Removes a sent delivery. Returns true if its destination was full, and at most half of the
   * deliveries that were claimed in advance are left. Open claims return no deliveries for this
   * destination, so the caller must send a new claim.
   */
  finish(destination: string): boolean
  /** Returns a waiting delivery that may be sent now. Takes the destinations in round robin. */
  next(): OpenDelivery | undefined
  /** Removes and returns all waiting deliveries. */
  dropWaiting(): OpenDelivery[]
}

export function createOpenDeliveries({
  concurrency,
  perDestination,
  aheadOf = () => 0,
}: {
  concurrency: number
  perDestination: number
  /** Number of deliveries to claim in advance for this destination. */
  aheadOf?: (destination: string) => number
}): OpenDeliveries {
  const sending = new Map<string, number>()
  /** Number of running and waiting deliveries per destination. */
  const held = new Map<string, number>()
  /** Waiting deliveries per destination, in round-robin order. */
  const waiting = new Map<string, OpenDelivery[]>()
  let places = concurrency
  let full = 0

  function setSending(destination: string, before: number, now: number): void {
    if (now === 0) sending.delete(destination)
    else sending.set(destination, now)
    places += before - now
  }

  /**
   * Changes the number of deliveries of a destination by one. Returns true if the destination was
   * full before the change.
   */
  function changeHeld(destination: string, change: 1 | -1): boolean {
    const before = held.get(destination) ?? 0
    const now = before + change
    if (now === 0) held.delete(destination)
    else held.set(destination, now)
    full += Number(now >= perDestination) - Number(before >= perDestination)
    return before >= perDestination
  }

  const fullDestinations = () =>
    full === 0 ? [] : [...held].flatMap(([destination, count]) => (count >= perDestination ? [destination] : []))

  const destinationLimit = () => Math.min(perDestination, Math.max(1, Math.floor(places / 3)))

  function tryBegin(destination: string): boolean {
    const already = sending.get(destination) ?? 0
    if (places < 1 || already >= destinationLimit()) return false
    setSending(destination, already, already + 1)
    return true
  }

  return {
    places: () => places,
    ready() {
      let ready = 0
      for (const [destination, { length }] of waiting) {
        ready += Math.max(0, Math.min(length, destinationLimit() - (sending.get(destination) ?? 0)))
      }
      return ready
    },
    underWay: () => Object.fromEntries(held),
    full: () => new Set(fullDestinations()),
    anyFull: () => full > 0,
    add(open) {
      const { destination } = open.delivery
      changeHeld(destination, 1)
      const queued = waiting.get(destination)
      if (queued) queued.push(open)
      else if (tryBegin(destination)) return true
      else waiting.set(destination, [open])
      return false
    },
    finish(destination) {
      const before = sending.get(destination) ?? 0
      setSending(destination, before, before - 1)
      const wasFull = changeHeld(destination, -1)
      return wasFull && (held.get(destination) ?? 0) <= perDestination + aheadOf(destination) / 2
    },
    next() {
      if (places < 1) return undefined
      for (const [destination, queued] of waiting) {
        if (!tryBegin(destination)) continue
        const open = queued.shift()
        waiting.delete(destination)
        if (queued.length > 0) waiting.set(destination, queued)
        return open
      }
      return undefined
    },
    dropWaiting() {
      const dropped = [...waiting.values()].flat()
      waiting.clear()
      for (const { delivery } of dropped) changeHeld(delivery.destination, -1)
      return dropped
    },
  }
}
