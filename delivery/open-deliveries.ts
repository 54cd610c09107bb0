import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { Context } from '../platform/observability/tracing.ts'

/** A delivery that the worker holds, and until when its claim holds. */
export interface OpenDelivery {
  readonly delivery: ClaimedDelivery
  /** Milliseconds since 1970; later with each renewal, and 0 once the claim is lost. */
  leaseEndsAt: number
  /** The trace of its claim. */
  readonly claimedIn?: Context
}

/**
 * Which deliveries a worker holds, and which of them it may send: never more than `concurrency` at once, nor more than
 * `perDestination` to one destination, nor more to one than a third of the places that are free. So a few destinations that
 * hang never have all places.
 */
export interface OpenDeliveries {
  /** Sends that may begin now. */
  places(): number
  /** How many wait for nothing but a place: not those of a destination that has as many as it may. */
  ready(): number
  /** By destination, as a claim tells the core. */
  underWay(): Record<string, number>
  /** Whether some destination has as many as a claim gives it, those that wait included. */
  anyFull(): boolean
  /** True: it may be sent now. False: it waits, and `next` gives it out. */
  admit(open: OpenDelivery): boolean
  /** One is done: whether its destination has room again that a claim does not know of. */
  finish(destination: string): boolean
  /** One that waited and may be sent now, each destination in turn. */
  next(): OpenDelivery | undefined
  /** Those that wait are no longer held, and given out. */
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
  /** Sending or waiting. */
  const held = new Map<string, number>()
  /** In the order in which they have their turn. */
  const waiting = new Map<string, OpenDelivery[]>()
  let places = concurrency
  let full = 0

  function setSending(destination: string, before: number, now: number): void {
    if (now === 0) sending.delete(destination)
    else sending.set(destination, now)
    places += before - now
  }

  /** Notes that the destination has one more, or one less; whether it had as many as it may. */
  function hold(destination: string, change: 1 | -1): boolean {
    const before = held.get(destination) ?? 0
    const now = before + change
    if (now === 0) held.delete(destination)
    else held.set(destination, now)
    full += Number(now >= perDestination) - Number(before >= perDestination)
    return before >= perDestination
  }

  const mayHave = () => Math.min(perDestination, Math.max(1, Math.floor(places / 3)))

  function begin(destination: string): boolean {
    const already = sending.get(destination) ?? 0
    if (places < 1 || already >= mayHave()) return false
    setSending(destination, already, already + 1)
    return true
  }

  return {
    places: () => places,
    ready() {
      let ready = 0
      for (const [destination, { length }] of waiting) {
        ready += Math.max(0, Math.min(length, mayHave() - (sending.get(destination) ?? 0)))
      }
      return ready
    },
    underWay: () => Object.fromEntries(held),
    anyFull: () => full > 0,
    admit(open) {
      const { destination } = open.delivery
      hold(destination, 1)
      const queued = waiting.get(destination)
      if (queued) queued.push(open)
      else if (begin(destination)) return true
      else waiting.set(destination, [open])
      return false
    },
    finish(destination) {
      const before = sending.get(destination) ?? 0
      setSending(destination, before, before - 1)
      return hold(destination, -1)
    },
    next() {
      if (places < 1) return undefined
      for (const [destination, queued] of waiting) {
        if (!begin(destination)) continue
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
      for (const { delivery } of dropped) hold(delivery.destination, -1)
      return dropped
    },
  }
}
