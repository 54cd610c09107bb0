import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Client, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { AttemptResultSchema } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { errorInfoOf } from '../core-client/error-info.ts'
import type { Backoff } from './backoff.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDelivery } from './open-deliveries.ts'

export type AttemptReport = MessageInitShape<typeof AttemptResultSchema>

export interface Reports {
  /** Passes a result on, as soon as it may. */
  add(report: AttemptReport, held: OpenDelivery): void
  /** Results that no core has taken yet. */
  backlog(): number
  /** Waits until a core has taken everything, or the time is up. */
  close(withinMs: number): Promise<void>
}

/** The most that the core takes at once. */
const batchMax = 1_000
/** How long a result is offered: also after its lease, since it saves a second request if nobody else has taken the delivery over. */
const keepMs = 600_000

/**
 * Reports to the core what became of attempts: whatever finished while the last report was under way is the next one. A report is
 * repeated until a core has answered it; the claim that it carries makes a repeat, or a late one, harmless.
 */
export function createReports(options: {
  core: Pick<Client<typeof LeadService>, 'recordAttempts'>
  backoff: Backoff
  metrics: DeliveryMetrics
  logger: Logger
  now: () => number
  /** A core has taken these results, or nobody will. */
  onGone: (held: OpenDelivery[]) => void
}): Reports {
  const { core, backoff, metrics, logger, now, onGone } = options
  let queue: { report: AttemptReport; held: OpenDelivery; giveUpAt: number }[] = []
  let running: Promise<void> | undefined
  let batchLimit = batchMax
  const stopped = new AbortController()

  async function run(): Promise<void> {
    while (queue.length > 0 && !stopped.signal.aborted) {
      const batch = queue.slice(0, batchLimit)
      try {
        const { recorded } = await core.recordAttempts({ results: batch.map(({ report }) => report) })
        queue = queue.slice(batch.length)
        batchLimit = batchMax
        backoff.reset()
        onGone(batch.map(({ held }) => held))
        const lost = recorded.filter(({ counted }) => !counted).length
        metrics.lateResults.inc(lost)
        if (lost > 0) logger.warn({ lost }, 'results came after their claims were lost')
      } catch (error) {
        if (isRefusal(error)) refused(batch.length)
        else await outOfReach(error)
      }
    }
  }

  /** One result that the core will never take must not keep the others back: it is found by halving, and given up. */
  function refused(size: number): void {
    if (size > 1) {
      batchLimit = Math.ceil(size / 2)
      return
    }
    const [first] = queue.splice(0, 1)
    if (first) onGone([first.held])
    logger.error({ deliveryId: first?.report.deliveryId }, 'the core does not take the result of an attempt')
    batchLimit = batchMax
  }

  async function outOfReach(error: unknown): Promise<void> {
    const tooLate = queue.filter(({ giveUpAt }) => now() >= giveUpAt)
    if (tooLate.length > 0) {
      queue = queue.filter((each) => !tooLate.includes(each))
      onGone(tooLate.map(({ held }) => held))
      logger.error({ given: tooLate.length }, 'results given up: no core for too long')
    }
    if (backoff.failures() === 0) logger.warn({ code: ConnectError.from(error).code }, 'no core takes results')
    await backoff.pause(stopped.signal)
  }

  function work(): void {
    running ??= run().finally(() => {
      running = undefined
      // One may have come between the last look and the end.
      if (queue.length > 0 && !stopped.signal.aborted) work()
    })
  }

  return {
    add(report, held) {
      queue.push({ report, held, giveUpAt: now() + keepMs })
      work()
    },
    backlog: () => queue.length,
    async close(withinMs) {
      const timer = setTimeout(() => stopped.abort(), withinMs)
      while (running !== undefined && !stopped.signal.aborted) {
        await Promise.race([running, new Promise((resolve) => stopped.signal.addEventListener('abort', resolve))])
      }
      clearTimeout(timer)
      stopped.abort()
      if (queue.length > 0) logger.warn({ left: queue.length }, 'stopped with results that no core has taken')
    },
  }
}

/** The core has looked at it and says no, now and later. */
function isRefusal(error: unknown): boolean {
  const info = errorInfoOf(ConnectError.from(error))
  return info !== undefined && ['ValidationFailed', 'PayloadTooLarge'].includes(info.code)
}
