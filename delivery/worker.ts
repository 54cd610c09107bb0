import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import {
  AttemptPhase,
  type ClaimedDelivery,
  type ClaimState,
  FailureReason,
  type WorkDeliveriesResponse,
} from '#proto/lead/v1/delivery_pb.js'
import type { CoreNode, CorePool } from '../core-client/core-pool.ts'
import { createResolver } from '../platform/addresses/resolve.ts'
import { everyTicks } from '../platform/concurrency/ticks.ts'
import { readAtScrape } from '../platform/observability/metrics.ts'
import { contextOf, inSpan, SpanKind } from '../platform/observability/tracing.ts'
import type { DeliveryConfig } from './config.ts'
import { type CoreStream, createCoreStream } from './core-stream.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import { createOpenDeliveries, keyOf, type OpenDelivery } from './open-deliveries.ts'
import { createSender, type Outcome, type Sender } from './sender.ts'

/** Time for the last results of a stopping worker. */
const lastResultsMs = 2_000
/** Something is sent on each stream in this interval, so that the cores know that the worker runs. */
const beatMs = 500

/** More than one, so that a failed renewal is repeated before the lease ends. */
const renewalsPerLease = 4

/**
 * Sends the deliveries of the cores' streams, and returns the results. Renews the leases of slow attempts.
 * When a stream ends, another one carries its results and renewals. A worker has no database, and its
 * service token is its only secret.
 */
export function createDelivery(given: {
  config: DeliveryConfig
  cores: CorePool
  logger: Logger
  metrics?: DeliveryMetrics
  sender?: Sender
  /** Pause after the first failed call, in milliseconds. Tests replace it. */
  retryMs?: number
}) {
  const { config, cores, metrics = createDeliveryMetrics(), retryMs = 200 } = given
  const { sender = createSender({ resolver: createResolver({ isAllowed: config.isAddressAllowed }) }) } = given
  const workerId = `${hostname().slice(0, 40)}-${randomBytes(6).toString('hex')}`
  // The id is also in claims, so that logs of worker and core can be correlated.
  const logger = given.logger.child({ workerId })
  const { DELIVERY_CONCURRENCY: concurrency, DELIVERY_PER_DESTINATION: perDestination } = config
  const streams = new Map<string, CoreStream>()
  /** Streams without further deliveries. */
  const drained = new Set<CoreStream>()
  const open = createOpenDeliveries({ concurrency, perDestination })
  /** Deliveries whose results no core has recorded yet. */
  const held = new Map<string, OpenDelivery>()
  const running = new Set<Promise<void>>()
  const interrupted = new AbortController()
  const settled = Promise.withResolvers<void>()
  let isStopping = false
  let stopBeats = () => {}
  let turn = 0

  const openStreams = () => [...streams.values()].filter((stream) => stream.isOpen())

  readAtScrape([metrics.running, metrics.unreported, metrics.idleConnections, metrics.streams], () => [
    running.size,
    [...held.values()].filter(({ result }) => result !== undefined).length,
    sender.idleConnections(),
    openStreams().length,
  ])

  function addCore(core: CoreNode) {
    const stream: CoreStream = createCoreStream({ config, workerId, logger, retryMs }, core, {
      onOpen() {
        if (openStreams().length === 1) logger.info('a core accepted the stream; delivery worker is ready')
        onStreamsChanged()
      },
      onMessage: (message) => handle(message, stream),
      onEnd: () => onEnd(stream),
    })
    streams.set(core.url, stream)
  }

  function removeCore({ url }: CoreNode) {
    const stream = streams.get(url)
    streams.delete(url)
    if (stream) void stream.end().then(() => onEnd(stream))
  }

  function onEnd(stream: CoreStream) {
    drained.delete(stream)
    for (const each of held.values()) if (each.sentOver === stream) each.sentOver = undefined
    onStreamsChanged()
  }

  /** Divides the room between the cores, and sends results that have lost their stream. */
  function onStreamsChanged() {
    const all = openStreams()
    const share = (room: number) => Math.ceil(room / all.length)
    const limit = isStopping ? 0 : share(concurrency)
    for (const stream of all) stream.send({ room: { limit, perDestination: share(perDestination) } })
    for (const each of held.values()) if (each.result && !each.sentOver) sendResult(each)
    checkSettled()
  }

  function handle(message: WorkDeliveriesResponse, stream: CoreStream) {
    const { deliveries, recorded, renewed, recalled, drained: isDrained } = message
    metrics.received.inc(deliveries.length)
    for (const delivery of deliveries) add(delivery, stream)
    if (recalled.length > 0)
      releaseWaiting((each) => each.stream === stream && recalled.includes(each.delivery.destination))
    startNext()
    onRecorded(recorded)
    onRenewed(renewed)
    if (isDrained) drained.add(stream)
    checkSettled()
  }

  function add(delivery: ClaimedDelivery, stream: CoreStream) {
    const leaseEndsAt = Date.now() + delivery.leaseMs
    const each: OpenDelivery = { delivery, leaseEndsAt, renewedAt: Date.now(), stream }
    held.set(keyOf(delivery), each)
    if (isStopping) finish(each)
    else open.add(each)
  }

  function releaseWaiting(isReturned?: (open: OpenDelivery) => boolean) {
    for (const each of open.dropWaiting(isReturned)) finish(each)
  }

  function startNext() {
    for (let next = open.next(); next !== undefined; next = open.next()) run(next)
  }

  function run(each: OpenDelivery) {
    const attempt = send(each).finally(() => {
      running.delete(attempt)
      open.finish(each.delivery.destination)
      startNext()
    })
    running.add(attempt)
  }

  async function send(each: OpenDelivery) {
    const { delivery, leaseEndsAt } = each
    // Another worker may have claimed the delivery after the end of its lease.
    const isExpired = Date.now() >= leaseEndsAt
    const startedAt = performance.now()
    const outcome = isExpired
      ? undefined
      : await observeAttempt(delivery, metrics, () => sender.send(delivery, interrupted.signal))
    finish(each, outcome, Math.round(performance.now() - startedAt))
  }

  /** Without an outcome, the delivery returns to the queue. */
  function finish(each: OpenDelivery, outcome: Outcome = { case: 'released', value: {} }, durationMs = 0) {
    const { deliveryId, attemptId, claimId, attemptNumber, destination, headers } = each.delivery
    const correlationId = headers['x-correlation-id']
    logger.debug({ deliveryId, attemptId, correlationId, outcome: outcome.case, durationMs }, 'attempt ended')
    each.result = { deliveryId, attemptId, claimId, attemptNumber, destination, durationMs, outcome }
    sendResult(each)
  }

  /** Sends the result to the core that sent the delivery, or to another one. */
  function sendResult(each: OpenDelivery) {
    each.sentOver = each.stream.isOpen() ? each.stream : openStreams()[0]
    each.sentOver?.send({ results: [each.result!] })
  }

  function onRecorded(recorded: ClaimState[]) {
    const late = recorded.filter((state) => held.delete(keyOf(state)) && !state.held).length
    if (late === 0) return
    metrics.lateResults.inc(late)
    logger.warn({ lost: late }, 'results were reported after their leases were lost; a core ignored them')
  }

  /**
   * Sends renewals over one stream, and an empty message over the others. The streams take turns, so that a
   * core that hangs does not stop all renewals.
   */
  function sendRenewals() {
    const all = openStreams()
    const due = [...held.values()].filter(
      ({ leaseEndsAt, renewedAt, delivery: { leaseMs } }) =>
        leaseEndsAt > 0 && Date.now() - renewedAt >= leaseMs / renewalsPerLease,
    )
    for (const each of all.length > 0 ? due : []) {
      each.renewedAt = Date.now()
      each.renewingSince ??= Date.now()
    }
    const renewals = due.map(({ delivery: { deliveryId, claimId } }) => ({ deliveryId, claimId }))
    turn += 1
    for (const [index, stream] of all.entries()) stream.send(index === turn % all.length ? { renewals } : {})
  }

  /** Extends the renewed leases, and marks the lost ones. */
  function onRenewed(renewed: ClaimState[]) {
    let lost = 0
    for (const state of renewed) {
      const each = held.get(keyOf(state))
      metrics.renewals.inc({ result: state.held ? 'held' : 'lost' })
      if (!each) continue
      const { renewingSince = 0, delivery } = each
      each.renewingSince = undefined
      if (state.held) each.leaseEndsAt = Math.max(each.leaseEndsAt, renewingSince + delivery.leaseMs)
      else if (!each.result) {
        each.leaseEndsAt = 0
        lost += 1
      }
    }
    if (lost > 0) logger.warn({ lost }, 'leases lost; other workers may send these deliveries again')
  }

  function checkSettled() {
    if (isStopping && held.size === 0 && openStreams().every((stream) => drained.has(stream))) settled.resolve()
  }

  return {
    start() {
      cores.follow({ added: addCore, removed: removeCore })
      stopBeats = everyTicks(beatMs, sendRenewals)
    },
    /** Whether a core has accepted a stream. */
    isReady: () => openStreams().length > 0,
    /**
     * Takes no more deliveries, and returns those without an attempt to the queue. Waits for running
     * attempts during the grace time, then aborts them. One that has sent part of its request is a failure.
     */
    async stop() {
      if (isStopping) return
      isStopping = true
      onStreamsChanged()
      releaseWaiting()
      const grace = new AbortController()
      await Promise.race([
        allOf(running),
        delay(config.DELIVERY_GRACE_MS, undefined, { signal: grace.signal }).catch(() => {}),
      ])
      grace.abort()
      interrupted.abort()
      await allOf(running)
      checkSettled()
      await Promise.race([settled.promise, delay(lastResultsMs, undefined, { ref: false })])
      stopBeats()
      if (held.size > 0)
        logger.warn(
          { left: held.size },
          'stopped before all results were recorded; their deliveries will be sent again',
        )
      await Promise.race([
        Promise.all([...streams.values()].map((stream) => stream.end())),
        delay(lastResultsMs, undefined, { ref: false }),
      ])
      await sender.close()
    },
  }
}

/** Waits for all promises, also for those that are added meanwhile. */
async function allOf(running: Set<Promise<void>>) {
  while (running.size > 0) await Promise.all(running)
}

/** Measures one attempt, and adds it to the trace of its delivery. The destination does not get the trace. */
function observeAttempt(delivery: ClaimedDelivery, metrics: DeliveryMetrics, send: () => Promise<Outcome>) {
  const parent = contextOf(delivery.traceparent)
  return inSpan('attempt', { kind: SpanKind.CLIENT, parent }, async (span) => {
    const startedAt = performance.now()
    const outcome = await send()
    metrics.attemptDuration.observe({ outcome: outcome.case }, (performance.now() - startedAt) / 1000)
    const { detail, phase } = detailOf(outcome)
    metrics.attempts.inc({ outcome: outcome.case, detail, phase })
    const correlationId = delivery.headers['x-correlation-id']
    span.setAttributes({
      'service.attempt.outcome': outcome.case,
      ...(correlationId !== undefined && { 'service.correlation_id': correlationId }),
      ...(outcome.case === 'response' && { 'http.response.status_code': outcome.value.status }),
      ...(outcome.case === 'failure' && { 'error.type': detail, 'service.attempt.phase': phase }),
    })
    return outcome
  })
}

function detailOf(outcome: Outcome) {
  if (outcome.case === 'response') return { detail: `${Math.floor(outcome.value.status / 100)}xx`, phase: '' }
  if (outcome.case === 'released') return { detail: '', phase: '' }
  const { reason, phase } = outcome.value
  return { detail: FailureReason[reason].toLowerCase(), phase: AttemptPhase[phase].toLowerCase() }
}
