import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'

/** A delivery that the worker holds, and until when its claim holds. */
export interface OpenDelivery {
  readonly delivery: ClaimedDelivery
  /** Milliseconds since 1970; later with each renewal, and 0 once the claim is lost. */
  leaseEndsAt: number
}

/** Which deliveries a worker holds, and which of them it may send: never more than `perDestination` at once to one destination. */
export interface OpenDeliveries {
  /** Held, sending or waiting for another one to the same destination. */
  count(): number
  /** By destination, as a claim tells the core. */
  underWay(): Record<string, number>
  /** Whether some destination has as many as it may. */
  anyFull(): boolean
  /** True: it may be sent now. False: it waits, and `finish` gives it out. */
  admit(open: OpenDelivery): boolean
  /** One is done. `next`: another that waited for it; `wasFull`: the destination has room again. */
  finish(destination: string): { next: OpenDelivery | undefined; wasFull: boolean }
  /** Those that wait are no longer held, and given out. */
  dropWaiting(): OpenDelivery[]
}

export function createOpenDeliveries(perDestination: number): OpenDeliveries {
  const sending = new Map<string, number>()
  const waiting = new Map<string, OpenDelivery[]>()
  let count = 0
  let full = 0

  function setSending(destination: string, before: number, now: number): void {
    if (now === 0) sending.delete(destination)
    else sending.set(destination, now)
    full += Number(now >= perDestination) - Number(before >= perDestination)
  }

  return {
    count: () => count,
    underWay: () =>
      Object.fromEntries(
        [...sending].map(([destination, number]) => [destination, number + (waiting.get(destination)?.length ?? 0)]),
      ),
    anyFull: () => full > 0,
    admit(open) {
      const { destination } = open.delivery
      count++
      const already = sending.get(destination) ?? 0
      if (already < perDestination) {
        setSending(destination, already, already + 1)
        return true
      }
      waiting.set(destination, [...(waiting.get(destination) ?? []), open])
      return false
    },
    finish(destination) {
      count--
      const before = sending.get(destination) ?? 0
      const queued = waiting.get(destination)
      const next = queued?.shift()
      if (queued?.length === 0) waiting.delete(destination)
      if (next === undefined) setSending(destination, before, before - 1)
      return { next, wasFull: before >= perDestination && next === undefined }
    },
    dropWaiting() {
      const dropped = [...waiting.values()].flat()
      waiting.clear()
      count -= dropped.length
      return dropped
    },
  }
}
