import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { readAtScrape } from '../platform/observability/metrics.ts'
import { activeContext } from '../platform/observability/tracing.ts'
import { createBackoff } from './backoff.ts'
import { createClaims, type FollowCores } from './claims.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import { observeAttempt } from './observed-attempt.ts'
import { createOpenDeliveries, type OpenDelivery } from './open-deliveries.ts'
import { createPace } from './pace.ts'
import { createRenewals } from './renewals.ts'
import { createReports } from './reports.ts'
import type { Outcome, Sender } from './sender.ts'

/** So much work is held ready as was done in this time, so that a claim on its way leaves no place empty. */
const readyForMs = 200
/** And never more than this. */
const readyMax = 1_000
/** Time for the last reports of a worker that stops. */
const reportWithinMs = 2_000

export interface DeliveryWorker {
  start(): void
  /** Whether the cores answer. */
  isReady(): boolean
  /**
   * Takes no more work and hands back what it has not begun. Attempts under way end within the grace time; then they are
   * broken off, and what was sent is reported as an attempt.
   */
  stop(): Promise<void>
}

export interface WorkerOptions {
  /** Whichever core is in turn. */
  core: Pick<Client<typeof LeadService>, 'claimDeliveries' | 'renewClaims' | 'recordAttempts'>
  followCores: FollowCores
  sender: Sender
  /** Names the worker in its claims. */
  workerId: string
  /** Attempts at once. */
  concurrency: number
  /** Of them to one destination. */
  perDestination: number
  /** How long a claim waits for something that is due. */
  waitMs: number
  graceMs: number
  /** Time for an answer of the core, its waiting not counted. */
  answerWithinMs: number
  logger: Logger
  metrics?: DeliveryMetrics
  now?: () => number
  /** Milliseconds of a clock that never goes back. */
  monotonic?: () => number
  /** First pause after a failed call; for tests. */
  retryMs?: number
}

/**
 * Claims deliveries, sends them, reports what became of them. Claims go on while work is under way, so that slow destinations hold up
 * nobody but themselves, and what is slow keeps its claim.
 */
export function createDeliveryWorker(options: WorkerOptions): DeliveryWorker {
  const { core, sender, concurrency, perDestination, graceMs, logger, now = Date.now, retryMs } = options
  const { metrics = createDeliveryMetrics(), monotonic = () => performance.now() } = options
  const backoff = () => createBackoff(retryMs === undefined ? {} : { minMs: retryMs })
  const open = createOpenDeliveries({ concurrency, perDestination })
  const renewals = createRenewals({ core, metrics, logger, now })
  const reports = createReports({ core, backoff: backoff(), metrics, logger, now, onGone: gone })
  const pace = createPace({ windowMs: readyForMs, monotonic })
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
    // A core that hands out but takes nothing back must not make the results pile up.
    room: () => (reports.backlog() > 2 * concurrency + spare() ? 0 : open.places() + spare() - open.ready()),
    isStocked: () => open.ready() > spare() / 2,
    onClaimed: take,
    abandon: interrupted.signal,
  })

  function gone(reported: OpenDelivery[]): void {
    for (const held of reported) renewals.remove(held)
    claims.freed(false)
  }

  function take(deliveries: ClaimedDelivery[]): void {
    for (const delivery of deliveries) {
      const held = { delivery, leaseEndsAt: now() + delivery.leaseMs, claimedIn: activeContext() }
      renewals.add(held)
      if (stopping) report(held, { case: 'released', value: {} }, 0)
      else if (open.admit(held)) run(held)
    }
  }

  function run(held: OpenDelivery): void {
    const attempt = send(held).finally(() => {
      running.delete(attempt)
      pace.done()
      const wasFull = open.finish(held.delivery.destination)
      for (let next = open.next(); next !== undefined; next = open.next()) run(next)
      claims.freed(wasFull)
    })
    running.add(attempt)
  }

  async function send(held: OpenDelivery): Promise<void> {
    const { delivery, leaseEndsAt } = held
    // It waited for another one to its destination, and its claim is lost, or was not renewed: somebody else may have it.
    const late = now() >= leaseEndsAt
    const began = performance.now()
    const outcome: Outcome = late
      ? { case: 'released', value: {} }
      : await observeAttempt(held, metrics, () => sender.send(delivery, interrupted.signal))
    report(held, outcome, Math.round(performance.now() - began))
  }

  function report(held: OpenDelivery, outcome: Outcome, durationMs: number): void {
    const { deliveryId, attemptId, claimId, attemptNumber, destination } = held.delivery
    const correlationId = held.delivery.headers['x-correlation-id']
    logger.debug({ deliveryId, attemptId, correlationId, outcome: outcome.case, durationMs }, 'attempt over')
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
      await reports.close(reportWithinMs)
      renewals.stop()
      await sender.close()
    },
  }
}

/** Also those that join while it waits. */
async function allOf(running: Set<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running)
}
