import { inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { Candidates, DeliveryQueue, TakenDelivery } from '../delivery-stores/delivery-queue-store.ts'
import { invalid } from '../errors.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import type { DeliveryHolds } from './delivery-holds.ts'
import { reserveRequests } from './destination-rate.ts'
import { createDueDestinations, shuffled } from './due-destinations.ts'
import {
  bodiesMaxBytes,
  type ClaimedDelivery,
  newClaimId,
  type ReadyRequests,
  type SigningSecrets,
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

interface HeldClaim {
  deliveryId: string
  claimId: string
}

export interface DeliveryClaims {
  /**
   * Claims due deliveries that the worker has room for, fairly across destinations. The claimed
   * deliveries use up the room.
   */
  take(claimant: Claimant): Promise<Taken>
  /**
   * Renews leases. Returns one boolean per claim, in order. The boolean is false if the worker no
   * longer has the delivery, or if the claim has reached its maximum age. Errors:
   * `ValidationFailed`.
   */
  renew(claims: HeldClaim[]): Promise<boolean[]>
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

export function createDeliveryClaims(dependencies: {
  queue: DeliveryQueue
  holds: Pick<DeliveryHolds, 'hold'>
  requests: ReadyRequests
  /** Returns the claimed deliveries that may be sent now, as they may be sent. */
  sendable?: (taken: TakenDelivery[], claimId: string, at: Date) => Promise<TakenDelivery[]>
  metrics?: CoreMetrics
  settings: { leaseMs: number; deadlineMs: number }
  now: () => number
  random: () => number
}): DeliveryClaims {
  const { queue, holds, requests, sendable, metrics = createCoreMetrics() } = dependencies
  const { settings, now, random } = dependencies
  const dueDestinations = createDueDestinations({ queue, random })
  /** Serializes the claims of one core, so that they do not compete for the same deliveries. */
  let turn: Promise<unknown> = Promise.resolve()

  function serialize<T>(run: () => Promise<T>): Promise<T> {
    const result = turn.then(run)
    turn = result.catch(() => {})
    return result
  }

  async function take(claimant: Claimant): Promise<Taken> {
    const { room, signal } = claimant
    for (let tries = 1, mustRead = false; ; tries += 1) {
      const nothing = (isMoreDue: boolean, nextDueAt = Number.POSITIVE_INFINITY) => {
        const next = Math.min(nextDueAt, dueDestinations.pausedUntil())
        return { claimed: [], isMoreDue, ...(next < Number.POSITIVE_INFINITY && { nextDueAt: next }) }
      }
      if (signal.aborted || room.places() === 0) return nothing(true)
      const time = new Date(now())
      const { chosen, due, isFresh, nextDueAt } = await dueDestinations.choose(room, time, mustRead)
      if (chosen.length === 0) return nothing(due > 0, nextDueAt)
      const found = await candidatesOf(chosen, room, time)
      const reserved = reserveFairly(found, room)
      const claimed = await claimReserved(reserved, found, time, claimant).finally(() => {
        for (const destination of reserved.values()) room.free(destination)
      })
      if (claimed.length > 0) return { claimed, isMoreDue: claimed.length < due, nextDueAt }
      if ((reserved.size === 0 && isFresh) || tries === maxTries) return nothing(true, nextDueAt)
      mustRead = true
    }
  }

  /** Claims the reserved deliveries that the rates allow. Removes those from `reserved`. */
  async function claimReserved(
    reserved: Map<string, string>,
    found: Sendable[],
    time: Date,
    claimant: Claimant,
  ): Promise<ClaimedDelivery[]> {
    const ids = await withinRates([...reserved.keys()], found, time)
    if (ids.length === 0) return []
    const claimed = await claimInDatabase(ids, found, time, claimant)
    for (const { deliveryId } of claimed) reserved.delete(deliveryId)
    metrics.claimedDeliveries.inc(claimed.length)
    return claimed
  }

  async function candidatesOf(chosen: string[], room: WorkerRoom, time: Date) {
    const most = Math.max(...chosen.map(room.placesFor))
    // One more than the room, so that a destination with more due deliveries waits for room.
    const each = Math.min(most + 1, Math.ceil(Math.max(2 * room.places(), minCandidates) / chosen.length))
    const found = await queue.candidates(chosen, time, each)
    const sendable: Sendable[] = []
    for (const candidates of found) {
      const { subscription } = candidates
      if (subscription.status === 'disabled') await holds.hold(subscription.subscriptionId)
      else {
        const secrets = requests.secretsOf(subscription, time)
        if (secrets) sendable.push({ ...candidates, secrets })
      }
    }
    return shuffled(sendable, random)
  }

  /**
   * Reserves room for one delivery of each destination in turn, until the room is used up. Returns
   * the destinations by delivery.
   */
  function reserveFairly(found: Sendable[], room: WorkerRoom): Map<string, string> {
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
   * Returns the deliveries that the rate limits of their destinations allow now. Reserves the
   * requests before the claim. So the rate limit holds even if the claim fails or another core
   * claims deliveries too.
   */
  async function withinRates(ids: string[], found: Sendable[], time: Date): Promise<string[]> {
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
      const isReserved = granted > 0 && (await queue.reserve(subscriptionId, rateFreeAt, freeAt))
      for (const id of wanted.slice(isReserved ? granted : 0)) selected.delete(id)
      // If another core reserved requests first, this core's reservation fails. So no delivery is
      // claimed here, and the next claim reads the other core's reservation.
      if (granted < wanted.length) dueDestinations.pause(subscriptionId, nextAt)
      else if (!isReserved && granted > 0) dueDestinations.pause(subscriptionId, time.getTime() + conflictPauseMs)
    }
    return [...selected]
  }

  async function claimInDatabase(
    deliveryIds: string[],
    found: Sendable[],
    knownAt: Date,
    { workerId, signal }: Claimant,
  ): Promise<ClaimedDelivery[]> {
    const at = new Date(now())
    const claimId = newClaimId()
    const leaseUntil = new Date(at.getTime() + settings.leaseMs)
    const all = await inSpan('take deliveries', { kind: SpanKind.CLIENT, attributes: takeAttributes }, () =>
      queue.take(deliveryIds, { claimId, workerId, at, knownAt, leaseUntil }),
    )
    metrics.leaseExpiries.inc(all.filter(({ tookOver }) => tookOver).length)
    if (signal.aborted) {
      // The worker disconnected, so it cannot send these deliveries.
      await queue.releaseClaim(deliveryIds, claimId, at)
      return []
    }
    const taken = sendable ? await sendable(all, claimId, at) : all
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
      return sendable ? [requests.make(delivery, { claimId, ...sendable })] : []
    })
  }

  return {
    take: (claimant) => serialize(() => take(claimant)),

    async renew(claims) {
      if (claims.length > maxRenewed) {
        throw invalid('/claims', 'maxItems')
      }
      const at = now()
      const held = await queue.renew(claims, {
        leaseUntil: new Date(at + settings.leaseMs),
        // A claim is not renewed beyond this age. Within this time a worker can wait for one
        // earlier attempt to the same destination, send its own attempt and record the result.
        takenSince: new Date(at - 2 * (settings.deadlineMs + settings.leaseMs)),
      })
      const renewed = claims.map(({ deliveryId, claimId }) => held.get(deliveryId) === claimId)
      for (const isHeld of renewed) metrics.claimRenewals.inc({ result: isHeld ? 'held' : 'lost' })
      return renewed
    },
  }
}
