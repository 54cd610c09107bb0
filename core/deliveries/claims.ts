import { createSlots } from '../../platform/concurrency/slots.ts'
import { inDatabaseSpan } from '../../platform/observability/tracing.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { invalid } from '../errors.ts'
import { pauseDeliveries } from './pauses.ts'
import { type Candidates, deliveryQueueOf } from './queue.ts'
import { findSendable } from './sources.ts'
import { withoutSuppressed } from './suppressing.ts'
import {
  type ClaimedDelivery,
  countFittingBodies,
  makeRequest,
  newClaimId,
  type SigningSecrets,
  signingSecretsOf,
} from './webhook-requests.ts'
import type { WorkerRoom } from './worker-room.ts'

export interface Claimant {
  workerId: string
  room: WorkerRoom
  /** Aborts when the worker is gone. Then claimed deliveries return to the queue. */
  signal: AbortSignal
}

interface Sendable extends Candidates {
  secrets: SigningSecrets
}

/** A claim reads at least this number of candidates, which fills it even if most destinations have few. */
const minCandidates = 250
const maxRenewed = 1000
const maxTaken = 1000
/**
 * Time in milliseconds for which claims skip a destination after another core has reserved requests first.
 */
const conflictMs = 20
/** A claim reads candidates again, up to this number of times, if other cores have taken all of them. */
const maxTries = 5

/** Claims of one core run one by one, so that they do not compete. */
const turnsOf = perCore(() => createSlots({ max: 1 }))

/**
 * Claims due deliveries that the worker has room for, fairly across destinations. `isMoreDue` is true if
 * some are left that this or another worker may take. `nextDueAt` is the latest time for the next try;
 * infinity if it is not known.
 */
export const takeDeliveries = (core: Core, claimant: Claimant) => turnsOf(core).run(() => take(core, claimant))

async function take(core: Core, claimant: Claimant) {
  const { room, signal } = claimant
  const dueDestinations = dueDestinationsOf(core)
  for (let tries = 1, mustRead = false; ; tries += 1) {
    const nothing = (isMoreDue: boolean, nextDueAt = Number.POSITIVE_INFINITY) => {
      const claimed: ClaimedDelivery[] = []
      return { claimed, isMoreDue, nextDueAt: Math.min(nextDueAt, dueDestinations.throttledUntil()) }
    }
    if (signal.aborted || room.places() === 0) return nothing(true)
    const time = dateOf(core)
    const { chosen, due, isFresh, nextDueAt } = await dueDestinations.choose(room, time, mustRead)
    if (chosen.length === 0) return nothing(due > 0, nextDueAt)
    const found = await candidatesOf(core, chosen, room, time)
    const reserved = reserveFairly(found, room)
    const claimed = await claimReserved(core, reserved, found, time, claimant).finally(() => {
      for (const destination of reserved.values()) room.free(destination)
    })
    if (claimed.length > 0) return { claimed, isMoreDue: claimed.length < due, nextDueAt }
    if ((reserved.size === 0 && isFresh) || tries === maxTries) return nothing(true, nextDueAt)
    mustRead = true
  }
}

async function candidatesOf(core: Core, chosen: string[], room: WorkerRoom, time: Date) {
  const most = Math.max(...chosen.map(room.placesFor))
  // One more than the room, so that a destination with more due deliveries waits for room.
  const each = Math.min(most + 1, Math.ceil(Math.max(2 * room.places(), minCandidates) / chosen.length))
  const sendable: Sendable[] = []
  for (const candidates of await deliveryQueueOf(core).candidates(chosen, time, each)) {
    const { subscription } = candidates
    if (subscription.status === 'disabled') await pauseDeliveries(core, subscription.subscriptionId)
    else {
      const secrets = signingSecretsOf(core, subscription, time)
      if (secrets) sendable.push({ ...candidates, secrets })
    }
  }
  return shuffled(sendable, core.random)
}

function reserveFairly(found: Sendable[], room: WorkerRoom) {
  const reserved = new Map<string, string>()
  for (let turn = 0, open = found; open.length > 0; turn += 1) {
    open = open.filter(({ subscription: { subscriptionId }, deliveryIds }) => {
      const deliveryId = deliveryIds[turn]
      if (deliveryId === undefined || reserved.size === maxTaken || !room.reserve(subscriptionId)) return false
      reserved.set(deliveryId, subscriptionId)
      return true
    })
  }
  return reserved
}

/**
 * Returns the deliveries that the rate limits of their destinations allow now. Reserves the requests before
 * the claim, so the limit holds even if the claim fails or another core claims too.
 */
async function withinRates(core: Core, ids: string[], found: Sendable[], time: Date) {
  const dueDestinations = dueDestinationsOf(core)
  const selected = new Set(ids)
  for (const { subscription, deliveryIds, rateFreeAt } of found) {
    const { subscriptionId, maxPerSecond = 0 } = subscription
    if (maxPerSecond === 0) continue
    const wanted = deliveryIds.filter((id) => selected.has(id))
    const limit = { maxPerSecond, freeAt: rateFreeAt }
    const { granted, freeAt, nextAt } = reserveRequests(limit, wanted.length, time.getTime())
    const isReserved = granted > 0 && (await deliveryQueueOf(core).reserve(subscriptionId, rateFreeAt, freeAt))
    for (const id of wanted.slice(isReserved ? granted : 0)) selected.delete(id)
    // Another core reserved requests first. The next claim reads its reservation.
    if (granted < wanted.length) dueDestinations.throttle(subscriptionId, nextAt)
    else if (!isReserved && granted > 0) dueDestinations.throttle(subscriptionId, time.getTime() + conflictMs)
  }
  return [...selected]
}

async function claimReserved(
  core: Core,
  reserved: Map<string, string>,
  found: Sendable[],
  knownAt: Date,
  { workerId, signal }: Claimant,
) {
  const deliveryIds = await withinRates(core, [...reserved.keys()], found, knownAt)
  if (deliveryIds.length === 0) return []
  const queue = deliveryQueueOf(core)
  const at = dateOf(core)
  const claimId = newClaimId()
  const leaseUntil = new Date(at.getTime() + core.config.DELIVERY_LEASE_MS)
  const all = await inDatabaseSpan('take deliveries', { collection: 'deliveries', operation: 'update' }, () =>
    queue.take(deliveryIds, { claimId, workerId, at, knownAt }, leaseUntil),
  )
  core.metrics.leaseExpiries.inc(all.filter(({ tookOver }) => tookOver).length)
  if (signal.aborted) {
    // The worker disconnected, so it cannot send these deliveries.
    await queue.releaseClaim(deliveryIds, claimId, at)
    return []
  }
  const taken = await withoutSuppressed(core, await findSendable(core, all, claimId, at), claimId, at)
  const fitting = taken.splice(0, countFittingBodies(taken))
  const left = taken.map(({ deliveryId }) => deliveryId)
  if (left.length > 0) await queue.releaseClaim(left, claimId, at)
  const secretsOf = new Map(found.map(({ subscription, secrets }) => [subscription.subscriptionId, secrets]))
  const claimed = fitting.flatMap((delivery) => {
    const secrets = secretsOf.get(delivery.subscriptionId)
    return secrets ? [makeRequest(core, delivery, claimId, secrets)] : []
  })
  for (const { deliveryId } of claimed) reserved.delete(deliveryId)
  core.metrics.claimedDeliveries.inc(claimed.length)
  return claimed
}

/**
 * Renews claims, and returns for each whether it was renewed. A claim is not renewed if the delivery has
 * another one now, or if it is older than any attempt may take. Errors: `ValidationFailed`.
 */
export async function renewClaims(core: Core, claims: { deliveryId: string; claimId: string }[]): Promise<boolean[]> {
  if (claims.length > maxRenewed) throw invalid('/claims', 'maxItems')
  const { DELIVERY_LEASE_MS: leaseMs, DELIVERY_ATTEMPT_DEADLINE_MS: deadlineMs } = core.config
  const at = core.now()
  const held = await deliveryQueueOf(core).renew(claims, {
    leaseUntil: new Date(at + leaseMs),
    // Within this age a worker can wait for an earlier attempt, send its own and record the result.
    takenSince: new Date(at - 2 * (deadlineMs + leaseMs)),
  })
  const renewed = claims.map(({ deliveryId, claimId }) => held.get(deliveryId) === claimId)
  for (const isHeld of renewed) core.metrics.claimRenewals.inc({ result: isHeld ? 'held' : 'lost' })
  return renewed
}

const lookAhead = 256
/** A destination that becomes due in a backlog waits at most this long for its place in the list. */
const backlogMaxAgeMs = 500
const unknown = { due: Number.POSITIVE_INFINITY, nextDueAt: Number.POSITIVE_INFINITY }

/** Chooses destinations. Many claims share one list of due ones, so the cost does not grow with it. */
export const dueDestinationsOf = perCore((core) => {
  const { random } = core
  const queue = deliveryQueueOf(core)
  /**
   * The due destinations that no claim has chosen since `readAt`, in random order. Set from a poll that
   * finds `lookAhead` due deliveries until one that finds none.
   */
  let backlog: { destinations: string[]; readAt: number } | undefined

  const throttled = new Map<string, number>()

  /**
   * Chooses, at random, due destinations of which the worker can take one delivery each. `isFresh`: they
   * were read by this call. Also returns the number of due deliveries and the next due time: infinity if
   * more are due than a poll reads, or none is known.
   */
  async function choose(room: WorkerRoom, time: Date, mustRead: boolean) {
    for (const [destination, until] of throttled) if (until <= time.getTime()) throttled.delete(destination)
    if (backlog && !mustRead && time.getTime() < backlog.readAt + backlogMaxAgeMs) {
      const chosen = takeOpen(backlog.destinations, room)
      if (chosen.length > 0) return { chosen, isFresh: false, ...unknown }
    }
    const { destinations, ...rest } = await read(time)
    if (backlog) backlog = { destinations: shuffled(destinations, random), readAt: time.getTime() }
    const chosen = takeOpen(backlog?.destinations ?? shuffled(destinations, random), room)
    return { chosen, isFresh: true, ...rest }
  }

  /** Takes destinations with room off the list, so that each gets a turn before one is chosen again. */
  function takeOpen(destinations: string[], room: WorkerRoom) {
    const chosen: string[] = []
    const kept: string[] = []
    for (const destination of destinations) {
      if (!throttled.has(destination) && room.reserve(destination)) {
        chosen.push(destination)
        continue
      }
      kept.push(destination)
      // The refused destination waits for room, so the worker's next room is filled.
      if (room.places() === 0) break
    }
    destinations.splice(0, chosen.length + kept.length, ...kept)
    for (const destination of chosen) room.free(destination)
    return chosen
  }

  async function read(time: Date): Promise<{ destinations: string[] } & typeof unknown> {
    if (!backlog) {
      const upcoming = await queue.upcoming(lookAhead)
      const due = upcoming.filter(({ dueAt }) => dueAt <= time)
      if (due.length < lookAhead) {
        const destinations = [...new Set(due.map(({ destination }) => destination))]
        return { destinations, due: due.length, nextDueAt: upcoming[due.length]?.dueAt.getTime() ?? unknown.nextDueAt }
      }
    }
    // More may be due than the look-ahead covers: all due destinations are listed until nothing is due.
    const destinations = await queue.dueDestinations(time)
    backlog = destinations.length > 0 ? { destinations, readAt: time.getTime() } : undefined
    return backlog ? { destinations, ...unknown } : read(time)
  }

  return {
    choose,
    throttle: (destination: string, until: number) => void throttled.set(destination, until),
    throttledUntil: () => Math.min(Number.POSITIVE_INFINITY, ...throttled.values()),
  }
})

function shuffled<T>(values: T[], random: () => number) {
  const order = values.map((value) => ({ value, place: random() }))
  return order.sort((a, b) => a.place - b.place).map(({ value }) => value)
}

/**
 * Returns how many of the `wanted` requests may start at `now`, the state of the rate limit after them, and
 * the time of the next request. A tenth of a second's requests may start at once. The others are at least
 * `1000 / maxPerSecond` ms apart, so no second has more than `maxPerSecond`. Granted requests have reserved
 * the limit up to `freeAt`, in milliseconds since 1970.
 */
export function reserveRequests(
  { maxPerSecond, freeAt = 0 }: { maxPerSecond: number; freeAt: number | undefined },
  wanted: number,
  now: number,
) {
  const burst = Math.ceil(maxPerSecond / 10)
  const intervalMs = 1000 / (maxPerSecond - burst + 1)
  const from = Math.max(freeAt, now)
  // Compensates for rounding errors of the division.
  const free = Math.floor((now - from) / intervalMs + 1e-6) + burst
  const granted = Math.max(0, Math.min(wanted, free))
  const after = from + granted * intervalMs
  return { granted, freeAt: after, nextAt: Math.ceil(after - (burst - 1) * intervalMs) }
}
