import { setTimeout as delay } from 'node:timers/promises'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { AttemptResultSchema, type ClaimedDelivery, ClaimedDeliverySchema } from '#proto/lead/v1/delivery_pb.js'
import type { RunningCore } from '../context.ts'
import type { Core } from '../core.ts'
import { takeDeliveries } from '../deliveries/claims.ts'
import { type AttemptResult, addResult } from '../deliveries/results.ts'
import type { WorkerRoom } from '../deliveries/worker-room.ts'
import { fromResult } from '../rpc/leads/work-deliveries.ts'
import { validate } from '../rules.ts'

export interface Room {
  limit?: number
  perDestination?: number
  /** Number of the worker's deliveries in progress, by destination. */
  underWay?: Record<string, number>
}

/** Places for one claim. It takes as many deliveries as the limits allow, and none in advance. */
export function roomOf({ limit = 100, perDestination = 100, underWay = {} }: Room): WorkerRoom {
  let left = limit
  const taken = new Map(Object.entries(underWay))
  const of = (destination: string) => taken.get(destination) ?? 0
  const placesFor = (destination: string) => Math.min(left, perDestination - of(destination))
  return {
    places: () => left,
    placesFor,
    taken: () => limit - left,
    reserve(destination) {
      if (placesFor(destination) <= 0) return false
      taken.set(destination, of(destination) + 1)
      left -= 1
      return true
    },
    free(destination) {
      taken.set(destination, of(destination) - 1)
      left += 1
      return false
    },
    resize() {},
    has: (destination) => of(destination) > 0,
    destinations: () => [...taken.keys()],
  }
}

/** Claims due deliveries as a worker with this room. Waits for the first one at most `waitMs`. */
export async function claimDue(
  core: RunningCore,
  { workerId = 'worker', waitMs = 0, ...room }: Room & { workerId?: string; waitMs?: number } = {},
  signal = new AbortController().signal,
): Promise<ClaimedDelivery[]> {
  const until = performance.now() + waitMs
  for (;;) {
    const { claimed } = await takeDeliveries(core, { workerId, room: roomOf(room), signal })
    if (claimed.length > 0 || performance.now() >= until)
      return claimed.map((each) => create(ClaimedDeliverySchema, each))
    await delay(20)
  }
}

/** Records results. Returns for each whether the worker still had the delivery. */
export const addResults = (core: Core, results: AttemptResult[]): Promise<boolean[]> =>
  Promise.all(results.map((one) => addResult(core, one)))

/** Records results as a worker. Returns for each whether the worker still had the delivery. */
export async function recordResults(
  core: RunningCore,
  results: MessageInitShape<typeof AttemptResultSchema>[],
): Promise<boolean[]> {
  const read = results.map((result, index) => {
    const one = fromResult(create(AttemptResultSchema, result))
    validate(one ? undefined : { path: `/results/${index}`, rule: 'oneOf' })
    return one!
  })
  return addResults(core, read)
}
