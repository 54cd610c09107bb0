import { setTimeout as delay } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Client, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { AttemptResultSchema } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { errorInfoOf } from '../core-client/error-info.ts'
import type { Backoff } from '../platform/concurrency/backoff.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDelivery } from './open-deliveries.ts'

type AttemptReport = MessageInitShape<typeof AttemptResultSchema>

export interface Reports {
  /** Queues the result of an attempt. */
  add(report: AttemptReport, held: OpenDelivery): void
  /** Number of results that are not yet accepted by a core. */
  backlog(): number
  /** Waits until a core has accepted all results, at most `withinMs`. */
  close(withinMs: number): Promise<void>
}

/** Maximum number of results per report. */
const batchMax = 1_000
/**
 * Minimum time between reports in milliseconds. Reporting a result in a batch costs a tenth of
 * reporting it alone.
 */
const intervalMs = 20
/**
 * How long a report is retried, even after the lease has expired. If no other worker has claimed
 * the delivery yet, the late report prevents a second request.
 */
const retryForMs = 600_000

/**
 * Reports results of attempts to the cores in batches. Results that arrive during a report, or
 * shortly after it, form the next batch. If there was no report recently, a result is reported
 * immediately. A report is retried until a core answers. The claim id in each result makes
 * duplicate and late reports harmless.
 */
export function createReports(options: {
  core: Pick<Client<typeof LeadService>, 'recordAttempts'>
  backoff: Backoff
  metrics: DeliveryMetrics
  logger: Logger
  now: () => number
  /** Called with deliveries whose results were accepted by a core or dropped. */
  onDone: (held: OpenDelivery[]) => void
}): Reports {
  const { core, backoff, metrics, logger, now, onDone } = options
  let queue: { report: AttemptReport; held: OpenDelivery; giveUpAt: number }[] = []
  let running: Promise<void> | undefined
  let batchLimit = batchMax
  let lastAt = Number.NEGATIVE_INFINITY
  const closing = new AbortController()
  const stopped = new AbortController()

  async function waitForInterval(): Promise<void> {
    const ms = lastAt + intervalMs - performance.now()
    if (ms > 0 && queue.length < batchLimit) await delay(ms, undefined, { signal: closing.signal }).catch(() => {})
    lastAt = performance.now()
  }

  async function run(): Promise<void> {
    while (queue.length > 0 && !stopped.signal.aborted) {
      await waitForInterval()
      const batch = queue.slice(0, batchLimit)
      try {
        const { recorded } = await core.recordAttempts({ results: batch.map(({ report }) => report) })
        queue = queue.slice(batch.length)
        batchLimit = batchMax
        backoff.reset()
        onDone(batch.map(({ held }) => held))
        const lost = recorded.filter(({ counted }) => !counted).length
        metrics.lateResults.inc(lost)
        if (lost > 0) logger.warn({ lost }, 'results were reported after their leases were lost; the core ignored them')
      } catch (error) {
        if (isRefusal(error)) splitOrDrop(batch.length)
        else await handleUnreachable(error)
      }
    }
  }

  /**
   * A core rejected the batch because of one result, which must not block the other results. Halves
   * the batch until it has one result, then drops that result.
   */
  function splitOrDrop(size: number): void {
    if (size > 1) {
      batchLimit = Math.ceil(size / 2)
      return
    }
    const [first] = queue.splice(0, 1)
    if (first) onDone([first.held])
    logger.error({ deliveryId: first?.report.deliveryId }, 'core rejected the result of an attempt; dropping it')
    batchLimit = batchMax
  }

  async function handleUnreachable(error: unknown): Promise<void> {
    const expired = queue.filter(({ giveUpAt }) => now() >= giveUpAt)
    if (expired.length > 0) {
      queue = queue.filter((each) => !expired.includes(each))
      onDone(expired.map(({ held }) => held))
      logger.error(
        { given: expired.length },
        'no core accepted the results of some attempts in time; dropping these results',
      )
    }
    if (backoff.failures() === 0)
      logger.warn({ code: ConnectError.from(error).code }, 'report failed on all cores; retrying with backoff')
    await backoff.pause(stopped.signal)
  }

  function start(): void {
    running ??= run().finally(() => {
      running = undefined
      // A result may have been added after the last check of the queue. Then another report is
      // needed.
      if (queue.length > 0 && !stopped.signal.aborted) start()
    })
  }

  return {
    add(report, held) {
      queue.push({ report, held, giveUpAt: now() + retryForMs })
      start()
    },
    backlog: () => queue.length,
    async close(withinMs) {
      closing.abort()
      const timer = setTimeout(() => stopped.abort(), withinMs)
      while (running !== undefined && !stopped.signal.aborted) {
        await Promise.race([running, new Promise((resolve) => stopped.signal.addEventListener('abort', resolve))])
      }
      clearTimeout(timer)
      stopped.abort()
      if (queue.length > 0)
        logger.warn(
          { left: queue.length },
          'stopped before a core accepted all results; their deliveries will be sent again',
        )
    },
  }
}

/** Returns true if the core rejected the report permanently, so that a retry is useless. */
function isRefusal(error: unknown): boolean {
  const info = errorInfoOf(ConnectError.from(error))
  return info !== undefined && ['ValidationFailed', 'PayloadTooLarge'].includes(info.code)
}
