import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { Context } from '../platform/observability/tracing.ts'

/** A delivery that the worker has leased. */
export interface OpenDelivery {
  readonly delivery: ClaimedDelivery
  /** Milliseconds since 1970. Moved by renewals, and 0 after the lease is lost. */
  leaseEndsAt: number
  /** The trace context of its claim. */
  readonly claimedIn?: Context
}

/**
 * Tracks the deliveries of a worker and limits how many it sends: at most `concurrency` at once, at
 * most `perDestination` per destination, and per destination at most a third of the free places. So
 * a few hanging destinations never use all places.
 */
export interface OpenDeliveries {
  /** Attempts that may start now. */
  places(): number
  /** Waiting deliveries whose destination is below its limit. */
  ready(): number
  /** Deliveries per destination, as sent in claims. */
  underWay(): Record<string, number>
  /** Whether a destination has `perDestination` deliveries, including waiting ones. */
  anyFull(): boolean
  /**
   * Adds a delivery. Returns true if it may be sent now; otherwise it waits and `next` returns it.
   */
  add(open: OpenDelivery): boolean
  /**
   * Removes a sent delivery. Returns whether its destination was full, so that claims did not know
   * of the room.
   */
  finish(destination: string): boolean
  /** Returns a waiting delivery that may be sent now, destinations in round robin. */
  next(): OpenDelivery | undefined
  /** Removes and returns all waiting deliveries. */
  dropWaiting(): OpenDelivery[]
}

export function createOpenDeliveries({
  concurrency,
  perDestination,
}: {
  concurrency: number
  perDestination: number
}): OpenDeliveries {
  const sending = new Map<string, number>()
  /** Sending and waiting deliveries per destination. */
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

  /** Counts one delivery more or less. Returns whether the destination was full before. */
  function changeHeld(destination: string, change: 1 | -1): boolean {
    const before = held.get(destination) ?? 0
    const now = before + change
    if (now === 0) held.delete(destination)
    else held.set(destination, now)
    full += Number(now >= perDestination) - Number(before >= perDestination)
    return before >= perDestination
  }

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
      return changeHeld(destination, -1)
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
