import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import { ServiceError } from '../errors.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import { field, integer, line, validate } from '../rules.ts'
import type { DeliveryHolds } from './delivery-holds.ts'
import type { Candidates, DeliveryQueue, TakenDelivery } from './delivery-queue-store.ts'
import { type DeliveryWork, type PollResult, pollEveryMs } from './delivery-work.ts'
import { reserveRequests } from './destination-rate.ts'
import { createDueDestinations, roomFor, shuffled } from './due-destinations.ts'
import {
  bodiesMaxBytes,
  type ClaimedDelivery,
  newClaimId,
  type ReadyRequests,
  type SigningSecrets,
} from './webhook-requests.ts'

export interface ClaimRequest {
  workerId: string
  limit: number
  /**
   * Maximum number of concurrent deliveries per destination, including those that the worker is
   * sending.
   */
  perDestination: number
  underWay: ReadonlyMap<string, number>
  /** Deliveries that the worker claims in advance, in addition to `perDestination`. */
  ahead?: ReadonlyMap<string, number>
  waitMs: number
  /** If true, the claim skips the queue and waits only for deliveries that this core inserts. */
  onlyNew: boolean
  /**
   * Ends the claim when the signal aborts. Deliveries that were claimed by then return to the
   * queue.
   */
  signal: AbortSignal
}

interface HeldClaim {
  deliveryId: string
  claimId: string
}

export interface DeliveryClaims {
  /**
   * Claims due deliveries, fairly across destinations. Returns an empty list if nothing becomes due
   * within `waitMs`. Errors: `ValidationFailed`.
   */
  claim(request: ClaimRequest): Promise<ClaimedDelivery[]>
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
 * A claim reads up to `max(2 * limit, minCandidates)` candidates, divided equally among its
 * destinations. This number fills the claim even if most of its destinations have few due
 * deliveries.
 */
const minCandidates = 250
const maxRenewed = 1000
/**
 * Time in milliseconds during which claims skip a destination with a rate limit after another core
 * reserved requests to it first.
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
  work: DeliveryWork<ClaimedDelivery[], ClaimRequest>
  requests: ReadyRequests
  /** Ends claimed deliveries of suppressed people. Returns the other deliveries. */
  withoutSuppressed?: (taken: TakenDelivery[], claimId: string, at: Date) => Promise<TakenDelivery[]>
  /** Whether this process currently receives all wake-ups that other cores send. */
  isCurrent: () => boolean
  /** Called with each valid request. */
  onRequest?: (request: ClaimRequest) => void
  metrics?: CoreMetrics
  settings: { leaseMs: number; deadlineMs: number }
  now: () => number
  random: () => number
}): DeliveryClaims {
  const { withoutSuppressed, onRequest = () => {} } = dependencies
  const { queue, holds, work, requests, isCurrent, metrics = createCoreMetrics(), settings, now, random } = dependencies
  const dueDestinations = createDueDestinations({ queue, random })
  /** Serializes the claims of one core, so that they do not compete for the same deliveries. */
  let turn: Promise<unknown> = Promise.resolve()
  /**
   * Set when a poll finds nothing: no delivery is due before `until`. Invalid once
   * `work.announced()` differs from `announced`, because then new work was announced.
   */
  let idle = { announced: -1, until: 0 }

  function serialize<T>(run: () => Promise<T>): Promise<T> {
    const result = turn.then(run)
    turn = result.catch(() => {})
    return result
  }

  /**
   * Polls the queue, unless the last poll showed that nothing is due. A request that skips the poll
   * waits until work is announced.
   */
  async function pollUnlessIdle(request: ClaimRequest): Promise<PollResult<ClaimedDelivery[]>> {
    const announced = work.announced()
    const time = now()
    if (request.waitMs > 0 && idle.announced === announced && time < idle.until && isCurrent()) {
      return { othersMayFind: false, nextDueAt: idle.until }
    }
    const polled = await poll(request)
    if (polled.found === undefined && !polled.othersMayFind) {
      idle = { announced, until: Math.min(time + pollEveryMs, polled.nextDueAt ?? Number.POSITIVE_INFINITY) }
    }
    return polled
  }

  async function poll(request: ClaimRequest): Promise<PollResult<ClaimedDelivery[]>> {
    if (request.signal.aborted) return { othersMayFind: true }
    for (let tries = 1, mustRead = false; ; tries += 1) {
      const time = new Date(now())
      const { chosen, isAnyDue, isFresh, nextDueAt } = await dueDestinations.choose(request, time, mustRead)
      const nothing = (othersMayFind: boolean) => {
        const next = Math.min(nextDueAt ?? Number.POSITIVE_INFINITY, dueDestinations.pausedUntil())
        return { othersMayFind, ...(next < Number.POSITIVE_INFINITY && { nextDueAt: next }) }
      }
      if (chosen.length === 0) return nothing(isAnyDue)
      const found = await candidatesOf(chosen, request, time)
      const ids = await withinRates(selectFairly(found, request), found, time)
      if (ids.length === 0) {
        if (isFresh) return nothing(true)
        mustRead = true
        continue
      }
      const claimed = await take(ids, found, time, request)
      if (claimed.length > 0) return { found: claimed, othersMayFind: true }
      if (tries === maxTries || request.signal.aborted) return nothing(true)
    }
  }

  async function candidatesOf(chosen: string[], request: ClaimRequest, time: Date) {
    const { limit, perDestination, ahead } = request
    const most = perDestination + Math.max(0, ...chosen.map((destination) => ahead?.get(destination) ?? 0))
    const each = Math.min(most, limit, Math.ceil(Math.max(2 * limit, minCandidates) / chosen.length))
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
   * Selects the deliveries to claim: one of each destination in turn, until the limit is reached.
   */
  function selectFairly(found: Sendable[], request: ClaimRequest): string[] {
    const ids: string[] = []
    let open = found.map(({ subscription, deliveryIds }) =>
      deliveryIds.slice(0, roomFor(subscription.subscriptionId, request)),
    )
    for (let round = 0; open.length > 0; round += 1) {
      open = open.filter(({ length }) => length > round)
      for (const deliveryIds of open) {
        if (ids.length === request.limit) return ids
        ids.push(deliveryIds[round] ?? '')
      }
    }
    return ids
  }

  /**
   * Returns the deliveries that the rate limits of their destinations allow now. Reserves the
   * requests before the claim. So the rate limit holds even if the claim fails or another core
   * claims.
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

  async function take(deliveryIds: string[], found: Sendable[], knownAt: Date, { workerId, signal }: ClaimRequest) {
    const at = new Date(now())
    const claimId = newClaimId()
    const leaseUntil = new Date(at.getTime() + settings.leaseMs)
    const all = await inSpan('take deliveries', { kind: SpanKind.CLIENT, attributes: takeAttributes }, () =>
      queue.take(deliveryIds, { claimId, workerId, at, knownAt, leaseUntil }),
    )
    metrics.leaseExpiries.inc(all.filter(({ tookOver }) => tookOver).length)
    if (signal.aborted) {
      // The worker disconnected, so nobody would send these deliveries.
      await queue.releaseClaim(deliveryIds, claimId, at)
      return []
    }
    const taken = withoutSuppressed ? await withoutSuppressed(all, claimId, at) : all
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
    async claim(request) {
      const { workerId, limit, perDestination, waitMs, onlyNew, signal } = request
      validate(
        field('/workerId', workerId, line(1, 64)),
        field('/limit', limit, integer(1, 1000)),
        field('/perDestination', perDestination, integer(1, 1000)),
        field('/waitMs', waitMs, integer(0, 30_000)),
        ...[...(request.ahead ?? [])].map(([name, number]) => field(`/ahead/${name}`, number, integer(0, 1000))),
      )
      onRequest(request)
      const claimed = await work.wait({
        until: now() + waitMs,
        signal,
        room: request,
        poll: onlyNew ? undefined : () => serialize(() => pollUnlessIdle(request)),
      })
      metrics.claimedDeliveries.inc(claimed?.length ?? 0)
      return claimed ?? []
    },

    async renew(claims) {
      if (claims.length > maxRenewed) {
        throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/claims', rule: 'maxItems' }] })
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
