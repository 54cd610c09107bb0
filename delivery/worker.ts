import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createBackoff } from '../platform/concurrency/backoff.ts'
import { readAtScrape } from '../platform/observability/metrics.ts'
import { activeContext } from '../platform/observability/tracing.ts'
import { createClaims, type FollowCores } from './claims.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import { observeAttempt } from './observed-attempt.ts'
import { createOpenDeliveries, type OpenDelivery } from './open-deliveries.ts'
import { createPace } from './pace.ts'
import { createRenewals } from './renewals.ts'
import { createReports } from './reports.ts'
import type { Outcome, Sender } from './sender.ts'

/**
 * Length of a time window in milliseconds. The worker claims as many deliveries in advance as it
 * finished in the current or the previous window. So when an attempt ends, the next attempt starts
 * without waiting for a claim.
 */
const readyWindowMs = 200
/** Maximum number of deliveries that are claimed in advance. */
const readyMax = 1_000
/** Maximum number of deliveries that are claimed in advance for one destination. */
const aheadMax = 100
/** Longest pause after failed calls. */
const retryMaxMs = 5_000
/** Time for the last reports of a stopping worker. */
const lastReportsMs = 2_000

export interface DeliveryWorker {
  start(): void
  /** Returns true if a core answered the last claim. */
  isReady(): boolean
  /**
   * Stops claiming. Deliveries whose attempt has not started go back to the queue. Waits for
   * running attempts during the grace time, then aborts them. If an aborted attempt has sent part
   * of its request, it is reported as a failure.
   */
  stop(): Promise<void>
}

export interface WorkerOptions {
  /** Client for the pool of cores. */
  core: Pick<Client<typeof LeadService>, 'claimDeliveries' | 'renewClaims' | 'recordAttempts'>
  followCores: FollowCores
  sender: Sender
  /** Identifies the worker in claims. */
  workerId: string
  /** Maximum number of concurrent attempts. */
  concurrency: number
  /** Maximum number of concurrent attempts per destination. */
  perDestination: number
  /** How long a claim waits in the core for deliveries. */
  waitMs: number
  graceMs: number
  /** Timeout of calls to a core. The wait of a claim is added to it. */
  answerWithinMs: number
  logger: Logger
  metrics?: DeliveryMetrics
  now?: () => number
  /** A monotonic clock in milliseconds. */
  monotonic?: () => number
  /** First pause after a failed call in milliseconds. Tests replace it. */
  retryMs?: number
}

/**
 * Claims deliveries, sends them and reports the results. Claiming continues while attempts run, so
 * slow destinations do not delay others. Leases of slow attempts are renewed.
 */
export function createDeliveryWorker(options: WorkerOptions): DeliveryWorker {
  const { core, sender, concurrency, perDestination, graceMs, logger, now = Date.now, retryMs = 200 } = options
  const { metrics = createDeliveryMetrics(), monotonic = () => performance.now() } = options
  const backoff = () => createBackoff({ minMs: retryMs, maxMs: retryMaxMs })
  const renewals = createRenewals({ core, metrics, logger, now })
  const reports = createReports({ core, backoff: backoff(), metrics, logger, now, onDone: onReported })
  const pace = createPace({ windowMs: readyWindowMs, monotonic })
  const open = createOpenDeliveries({ concurrency, perDestination, aheadOf })
  const spare = () => Math.min(pace.perWindow(), readyMax)
  const running = new Set<Promise<void>>()
  const interrupted = new AbortController()
  let stopping = false

  readAtScrape([metrics.running, metrics.unreported, metrics.idleConnections], () => [
    running.size,
    reports.backlog(),
    sender.idleConnections(),
  ])

  const claims = createClaims({
    ...options,
    metrics,
    backoff,
    open,
    ahead: () => {
      const counts = pace.destinations().map((name) => [name, aheadOf(name)] as const)
      return Object.fromEntries(counts.filter(([, count]) => count > 0))
    },
    // Claims nothing while reports fail, so that the backlog of results stays bounded.
    room: () => (reports.backlog() > 2 * concurrency + spare() ? 0 : open.places() + spare() - open.ready()),
    isStocked: () => open.ready() > spare() / 2,
    onClaimed: addClaimed,
    abandon: interrupted.signal,
  })

  /**
   * A destination that completes more than `perDestination` attempts in a window would wait for
   * claims. So the worker claims as many in advance as the destination completes in a window.
   */
  function aheadOf(destination: string): number {
    const completed = pace.ofDestination(destination)
    return completed > perDestination ? Math.min(completed, aheadMax) : 0
  }

  function onReported(reported: OpenDelivery[]): void {
    for (const held of reported) renewals.remove(held)
    claims.freed(false)
  }

  function addClaimed(deliveries: ClaimedDelivery[]): void {
    for (const delivery of deliveries) {
      const held = { delivery, leaseEndsAt: now() + delivery.leaseMs, claimedIn: activeContext() }
      renewals.add(held)
      if (stopping) report(held, { case: 'released', value: {} }, 0)
      else if (open.add(held)) run(held)
    }
  }

  function run(held: OpenDelivery): void {
    const attempt = send(held).finally(() => {
      running.delete(attempt)
      const { destination } = held.delivery
      pace.done(destination)
      const needsMore = open.finish(destination)
      for (let next = open.next(); next !== undefined; next = open.next()) run(next)
      claims.freed(needsMore, destination)
    })
    running.add(attempt)
  }

  async function send(held: OpenDelivery): Promise<void> {
    const { delivery, leaseEndsAt } = held
    // If the lease expired while the delivery waited, another worker may have claimed the delivery.
    const isExpired = now() >= leaseEndsAt
    const startedAt = performance.now()
    const outcome: Outcome = isExpired
      ? { case: 'released', value: {} }
      : await observeAttempt(held, metrics, () => sender.send(delivery, interrupted.signal))
    report(held, outcome, Math.round(performance.now() - startedAt))
  }

  function report(held: OpenDelivery, outcome: Outcome, durationMs: number): void {
    const { deliveryId, attemptId, claimId, attemptNumber, destination } = held.delivery
    const correlationId = held.delivery.headers['x-correlation-id']
    logger.debug({ deliveryId, attemptId, correlationId, outcome: outcome.case, durationMs }, 'attempt ended')
    reports.add({ deliveryId, attemptId, claimId, attemptNumber, destination, durationMs, outcome }, held)
  }

  return {
    start: claims.start,
    isReady: claims.isReady,
    async stop() {
      if (stopping) return
      stopping = true
      const claimsEnded = claims.stop()
      for (const held of open.dropWaiting()) report(held, { case: 'released', value: {} }, 0)
      const grace = new AbortController()
      await Promise.race([allOf(running), delay(graceMs, undefined, { signal: grace.signal }).catch(() => {})])
      grace.abort()
      interrupted.abort()
      await allOf(running)
      await claimsEnded
      await reports.close(lastReportsMs)
      renewals.stop()
      await sender.close()
    },
  }
}

/** Waits for all promises of the set, including promises that are added during the wait. */
async function allOf(running: Set<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running)
}
