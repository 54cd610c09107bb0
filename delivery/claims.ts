import { type Client, Code, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { inSpan, newTrace } from '../observability/tracing.ts'
import type { Backoff } from './backoff.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDeliveries } from './open-deliveries.ts'

export interface Claims {
  start(): void
  /** Something is done. `wasFull`: its destination may have another one now, which an open claim does not know. */
  freed(wasFull: boolean): void
  /** Whether the last claim was answered. */
  isReady(): boolean
  /** Resolves when no claim is open any more. */
  stop(): Promise<void>
}

/** Most that the core gives at once. */
const claimMax = 1_000
/** How long a claim waits while some destination is full: what it was told of them is soon out of date. */
const waitWhileFullMs = 250

/**
 * Keeps asking the core for work, in two ways at once. A poll is always open and waits for what becomes due. A refill takes what is due at once, whenever a full destination has room again: the open poll was told
 * that it is full. An open poll is never broken off for that, since the deliveries of an answer on its way would be lost until their
 * leases end.
 */
export function createClaims(options: {
  core: Pick<Client<typeof LeadService>, 'claimDeliveries'>
  workerId: string
  perDestination: number
  waitMs: number
  /** Time for an answer, on top of the waiting. */
  answerWithinMs: number
  backoff: Backoff
  open: OpenDeliveries
  /** Free places, claims not counted. */
  room: () => number
  /** There is enough to send until the next claim is answered. */
  isStocked: () => boolean
  onClaimed: (deliveries: ClaimedDelivery[]) => void
  /** Ends a claim that a stopping worker has waited for long enough. */
  abandon: AbortSignal
  metrics: DeliveryMetrics
  logger: Logger
}): Claims {
  const { core, workerId, perDestination, waitMs, answerWithinMs, backoff, open, room, isStocked, onClaimed } = options
  const { abandon, metrics, logger } = options
  const stopped = new AbortController()
  let reserved = 0
  let ready = false
  let roomMade = Promise.withResolvers<void>()
  let polling: Promise<void> = Promise.resolve()
  let refilling: Promise<void> | undefined
  let refillAgain = false

  const free = () => room() - reserved
  // However many destinations hang, they never have all places: one claim takes a part of those that are left, and
  // gives none of the destinations more than half of what is left after it.
  const share = (left: number) => Math.min(claimMax, Math.max(Math.ceil(left / 2), left - 2 * perDestination))
  const cap = (left: number) => Math.max(1, Math.min(perDestination, Math.floor((left - share(left)) / 2)))
  const isTight = () => open.anyFull() || cap(free()) < perDestination

  const claim = (wait: number, signal: AbortSignal) =>
    inSpan('claim deliveries', { parent: newTrace }, () => ask(wait, signal))

  async function ask(wait: number, signal: AbortSignal): Promise<number> {
    const left = free()
    const limit = share(left)
    reserved += limit
    try {
      const { deliveries } = await core.claimDeliveries(
        { workerId, limit, perDestination: cap(left), underWay: open.underWay(), waitMs: wait },
        { timeoutMs: wait + answerWithinMs, signal },
      )
      metrics.claims.inc({ result: deliveries.length > 0 ? 'work' : 'none' })
      metrics.claimed.inc(deliveries.length)
      onClaimed(deliveries)
      return deliveries.length
    } catch (error) {
      if (!signal.aborted) metrics.claims.inc({ result: 'failed' })
      throw error
    } finally {
      reserved -= limit
    }
  }

  async function poll(): Promise<void> {
    while (!stopped.signal.aborted) {
      // Not each time that a place is free: many at once cost the cores hardly more than one.
      if (free() < 1 || isStocked()) {
        await roomMade.promise
        continue
      }
      // The first one does not wait, so that whoever asks soon knows whether the cores answer.
      const wait = !ready ? 0 : isTight() ? Math.min(waitMs, waitWhileFullMs) : waitMs
      const askedAt = performance.now()
      try {
        const claimed = await claim(wait, stopped.signal)
        if (!ready) logger.info('the cores answer')
        ready = true
        // A core that does not wait, as one that is stopping, is not asked in circles.
        if (claimed > 0 || performance.now() - askedAt >= wait / 2) backoff.reset()
        else await backoff.pause(stopped.signal)
      } catch (error) {
        if (stopped.signal.aborted) return
        const { code } = ConnectError.from(error)
        if (ready || backoff.failures() === 0) logger.warn({ code: Code[code] }, 'no core gives work')
        ready = false
        await backoff.pause(stopped.signal)
      }
    }
  }

  async function refill(): Promise<void> {
    do {
      refillAgain = false
      if (stopped.signal.aborted) break
      if (free() < 1) {
        // For the next one that is done.
        refillAgain = true
        break
      }
      // The poll meets the same failure and says so.
      await claim(0, abandon).catch(() => 0)
    } while (refillAgain)
  }

  function makeRoom(): void {
    roomMade.resolve()
    roomMade = Promise.withResolvers()
  }

  return {
    start() {
      polling = poll()
    },
    freed(wasFull) {
      makeRoom()
      if (isStocked() || (!wasFull && !refillAgain && !isTight())) return
      refillAgain = true
      refilling ??= refill().finally(() => {
        refilling = undefined
      })
    },
    isReady: () => ready,
    async stop() {
      stopped.abort()
      makeRoom()
      await Promise.all([polling, refilling])
    },
  }
}
