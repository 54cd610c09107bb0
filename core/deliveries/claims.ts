import { inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import { type Core, perCore } from '../core.ts'
import { invalid } from '../errors.ts'
import { dueDestinationsOf, shuffled } from './due-destinations.ts'
import { holdDeliveries } from './holds.ts'
import { type Candidates, deliveryQueueOf } from './queue.ts'
import { findSendable } from './sources.ts'
import { withoutSuppressed } from './suppressing.ts'
import {
  bodiesMaxBytes,
  type ClaimedDelivery,
  makeRequest,
  newClaimId,
  type SigningSecrets,
  signingSecretsOf,
} from './webhook-requests.ts'
import type { WorkerRoom } from './worker-room.ts'

/** A worker that takes due deliveries. */
export interface Claimant {
  workerId: string
  room: WorkerRoom
  /** Aborts when the worker is gone. Deliveries that were claimed by then return to the queue. */
  signal: AbortSignal
}

interface Taken {
  claimed: ClaimedDelivery[]
  /** Whether due deliveries are left that this or another worker may take. */
  isMoreDue: boolean
  /** Latest time for the next try, if it is known. */
  nextDueAt?: number
}

/** Candidates of an enabled destination, with the secrets that currently sign its requests. */
interface Sendable extends Candidates {
  secrets: SigningSecrets
}

/**
 * A claim reads up to `max(2 * places, minCandidates)` candidates, divided equally among its
 * destinations. This number fills the claim even if most of its destinations have few due
 * deliveries.
 */
const minCandidates = 250
const maxRenewed = 1000
/** Maximum number of deliveries of one claim. */
const maxTaken = 1000
/**
 * Time in milliseconds for which claims skip a destination with a rate limit. The time starts when
 * this core's reservation fails, because another core has reserved requests first.
 */
const conflictPauseMs = 20
/**
 * Maximum number of times that a claim reads candidates. It reads again at once if other cores have
 * taken all its candidates.
 */
const maxTries = 5
const takeAttributes = {
  'db.system.name': 'mongodb',
  'db.collection.name': 'deliveries',
  'db.operation.name': 'update',
}

/** The end of the last claim. Claims of one core run one by one, so that they do not compete. */
const turnOf = perCore(() => ({ last: Promise.resolve() as Promise<unknown> }))

/**
 * Claims due deliveries that the worker has room for, fairly across destinations. The claimed
 * deliveries use up the room.
 */
export function takeDeliveries(core: Core, claimant: Claimant): Promise<Taken> {
  const turn = turnOf(core)
  const result = turn.last.then(() => take(core, claimant))
  turn.last = result.catch(() => {})
  return result
}

async function take(core: Core, claimant: Claimant): Promise<Taken> {
  const { room, signal } = claimant
  const dueDestinations = dueDestinationsOf(core)
  for (let tries = 1, mustRead = false; ; tries += 1) {
    const nothing = (isMoreDue: boolean, nextDueAt = Number.POSITIVE_INFINITY) => {
      const next = Math.min(nextDueAt, dueDestinations.pausedUntil())
      return { claimed: [], isMoreDue, ...(next < Number.POSITIVE_INFINITY && { nextDueAt: next }) }
    }
    if (signal.aborted || room.places() === 0) return nothing(true)
    const time = new Date(core.now())
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
    if (subscription.status === 'disabled') await holdDeliveries(core, subscription.subscriptionId)
    else {
      const secrets = signingSecretsOf(core, subscription, time)
      if (secrets) sendable.push({ ...candidates, secrets })
    }
  }
  return shuffled(sendable, core.random)
}

/**
 * Reserves room for one delivery of each destination in turn, until the room is used up. Returns
 * the destinations by delivery.
 */
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

/** Claims the reserved deliveries that the rates allow. Removes those from `reserved`. */
async function claimReserved(
  core: Core,
  reserved: Map<string, string>,
  found: Sendable[],
  time: Date,
  claimant: Claimant,
): Promise<ClaimedDelivery[]> {
  const ids = await withinRates(core, [...reserved.keys()], found, time)
  if (ids.length === 0) return []
  const claimed = await claimInDatabase(core, ids, found, time, claimant)
  for (const { deliveryId } of claimed) reserved.delete(deliveryId)
  core.metrics.claimedDeliveries.inc(claimed.length)
  return claimed
}

/**
 * Returns the deliveries that the rate limits of their destinations allow now. Reserves the
 * requests before the claim. So the rate limit holds even if the claim fails or another core
 * claims deliveries too.
 */
async function withinRates(core: Core, ids: string[], found: Sendable[], time: Date) {
  const dueDestinations = dueDestinationsOf(core)
  const selected = new Set(ids)
  for (const { subscription, deliveryIds, rateFreeAt } of found) {
    const { subscriptionId, maxPerSecond = 0 } = subscription
    if (maxPerSecond === 0) continue
    const wanted = deliveryIds.filter((id) => selected.has(id))
    const { granted, freeAt, nextAt } = reserveRequests(
      { maxPerSecond, freeAt: rateFreeAt },
      wanted.length,
      time.getTime(),
    )
    const isReserved = granted > 0 && (await deliveryQueueOf(core).reserve(subscriptionId, rateFreeAt, freeAt))
    for (const id of wanted.slice(isReserved ? granted : 0)) selected.delete(id)
    // If another core reserved requests first, this core's reservation fails. So no delivery is
    // claimed here, and the next claim reads the other core's reservation.
    if (granted < wanted.length) dueDestinations.pause(subscriptionId, nextAt)
    else if (!isReserved && granted > 0) dueDestinations.pause(subscriptionId, time.getTime() + conflictPauseMs)
  }
  return [...selected]
}

async function claimInDatabase(
  core: Core,
  deliveryIds: string[],
  found: Sendable[],
  knownAt: Date,
  { workerId, signal }: Claimant,
): Promise<ClaimedDelivery[]> {
  const queue = deliveryQueueOf(core)
  const at = new Date(core.now())
  const claimId = newClaimId()
  const leaseUntil = new Date(at.getTime() + core.config.DELIVERY_LEASE_MS)
  const all = await inSpan('take deliveries', { kind: SpanKind.CLIENT, attributes: takeAttributes }, () =>
    queue.take(deliveryIds, { claimId, workerId, at, knownAt, leaseUntil }),
  )
  core.metrics.leaseExpiries.inc(all.filter(({ tookOver }) => tookOver).length)
  if (signal.aborted) {
    // The worker disconnected, so it cannot send these deliveries.
    await queue.releaseClaim(deliveryIds, claimId, at)
    return []
  }
  const taken = await withoutSuppressed(core, await findSendable(core, all, claimId, at), claimId, at)
  let bytes = 0
  const fitting = taken.filter(({ body }, index) => {
    bytes += body.length
    return index === 0 || bytes <= bodiesMaxBytes
  })
  if (fitting.length < taken.length) {
    const kept = new Set(fitting)
    const rest = taken.filter((delivery) => !kept.has(delivery)).map(({ deliveryId }) => deliveryId)
    await queue.releaseClaim(rest, claimId, at)
  }
  const bySubscription = new Map(found.map((sendable) => [sendable.subscription.subscriptionId, sendable]))
  return fitting.flatMap((delivery) => {
    const sendable = bySubscription.get(delivery.subscriptionId)
    return sendable ? [makeRequest(core, delivery, { claimId, ...sendable })] : []
  })
}

/**
 * Renews leases. Returns one boolean per claim, in order. The boolean is false if the worker no
 * longer has the delivery, or if the claim has reached its maximum age. Errors:
 * `ValidationFailed`.
 */
export async function renewClaims(core: Core, claims: { deliveryId: string; claimId: string }[]): Promise<boolean[]> {
  if (claims.length > maxRenewed) throw invalid('/claims', 'maxItems')
  const { DELIVERY_LEASE_MS: leaseMs, DELIVERY_ATTEMPT_DEADLINE_MS: deadlineMs } = core.config
  const at = core.now()
  const held = await deliveryQueueOf(core).renew(claims, {
    leaseUntil: new Date(at + leaseMs),
    // A claim is not renewed beyond this age. Within this time a worker can wait for one
    // earlier attempt to the same destination, send its own attempt and record the result.
    takenSince: new Date(at - 2 * (deadlineMs + leaseMs)),
  })
  const renewed = claims.map(({ deliveryId, claimId }) => held.get(deliveryId) === claimId)
  for (const isHeld of renewed) core.metrics.claimRenewals.inc({ result: isHeld ? 'held' : 'lost' })
  return renewed
}

/** Rate limit of a destination. */
interface Rate {
  maxPerSecond: number
  /**
   * Time up to which granted requests have reserved the limit, in milliseconds since 1970. Each
   * request reserves one interval. Absent before the first request.
   */
  freeAt: number | undefined
}

/**
 * Returns how many of the `wanted` requests may start at `now`, and the state of the rate limit
 * after them. Also returns the time at which the next request may start. A tenth of the requests of
 * one second may start at once. The interval between the other requests is at least
 * `1000 / maxPerSecond` milliseconds, so that no second has more than `maxPerSecond` requests.
 */
export function reserveRequests({ maxPerSecond, freeAt }: Rate, wanted: number, now: number) {
  const burst = Math.ceil(maxPerSecond / 10)
  const intervalMs = 1000 / (maxPerSecond - burst + 1)
  const from = Math.max(freeAt ?? 0, now)
  // The added 1e-6 compensates for rounding errors of the division.
  const free = Math.floor((now - from) / intervalMs + 1e-6) + burst
  const granted = Math.max(0, Math.min(wanted, free))
  const after = from + granted * intervalMs
  return { granted, freeAt: after, nextAt: Math.ceil(after - (burst - 1) * intervalMs) }
}
