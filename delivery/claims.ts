import { type Client, Code, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { inSpan, newTrace } from '../platform/observability/tracing.ts'
import type { Backoff } from './backoff.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDeliveries } from './open-deliveries.ts'

export interface Claims {
  start(): void
  /**
   * Call when an attempt has ended.
   *
   * @param wasFull its destination was full and now has room, which open claims do not know
   */
  freed(wasFull: boolean): void
  /** Whether the last claim was answered. */
  isReady(): boolean
  /** Stops claiming. Resolves when no claim is open. */
  stop(): Promise<void>
}

/** Most deliveries that a core returns per claim. */
const claimMax = 1_000
/**
 * How long a claim waits while a destination is full. Short, because its limits are soon outdated.
 */
const waitWhileFullMs = 250

/** Reports each core that is added or removed, by URL. */
export type FollowCores = (follower: {
  added(url: string, calls: ClaimCalls): void
  removed(url: string): void
}) => void

interface ClaimOptions {
  wait: number
  signal: AbortSignal
  onlyNew?: boolean
}

export type ClaimCalls = Pick<Client<typeof LeadService>, 'claimDeliveries'>

/**
 * Claims deliveries from the cores with three kinds of calls:
 *
 * - One poll is always open and waits for deliveries that become due.
 * - One offer is open per core. The core gives it new deliveries directly, without the queue.
 * - A refill claims at once when a full destination has room again. Open calls do not know of the room.
 *
 * Open calls are never cancelled for a refill: deliveries of an answer in transit would be blocked
 * until their leases end.
 */
export function createClaims(options: {
  /** Client for the pool of cores. */
  core: ClaimCalls
  followCores: FollowCores
  workerId: string
  perDestination: number
  waitMs: number
  /** Time for an answer, in addition to the wait of the claim. */
  answerWithinMs: number
  backoff: () => Backoff
  open: OpenDeliveries
  /** Free places, without those reserved by open claims. */
  room: () => number
  /** Whether enough deliveries are ready until the next claim is answered. */
  isStocked: () => boolean
  onClaimed: (deliveries: ClaimedDelivery[]) => void
  /** Aborts the open claims of a stopping worker after its grace time. */
  abandon: AbortSignal
  metrics: DeliveryMetrics
  logger: Logger
}): Claims {
  const { core, followCores, workerId, perDestination, waitMs, answerWithinMs, open, room, isStocked, onClaimed } =
    options
  const { abandon, metrics, logger } = options
  const stopped = new AbortController()
  let reserved = 0
  let pollCap: number | undefined
  let ready = false
  let roomMade = Promise.withResolvers<void>()
  const claiming = new Set<Promise<void>>()
  const offers = new Map<string, AbortController>()
  let refilling: Promise<void> | undefined
  let refillAgain = false

  const free = () => room() - reserved
  // Keeps places free even if many destinations hang. One claim takes a share of the free places,
  // and at most half of the rest per destination.
  const share = (left: number) => Math.min(claimMax, Math.max(Math.ceil(left / 2), left - 2 * perDestination))
  const cap = (left: number) => Math.max(1, Math.min(perDestination, Math.floor((left - share(left)) / 2)))

  /** Notes the limit per destination of the open poll, or undefined while none is open. */
  function setPollCap(limit: number | undefined) {
    pollCap = limit
    if (limit !== undefined) makeRoom()
  }

  const claim = (calls: ClaimCalls, claimOptions: ClaimOptions) =>
    inSpan('claim deliveries', { parent: newTrace }, () => sendClaim(calls, claimOptions))

  async function sendClaim(calls: ClaimCalls, { wait, signal, onlyNew = false }: ClaimOptions): Promise<number> {
    const left = free()
    const limit = onlyNew ? Math.min(share(left), perDestination) : share(left)
    const most = cap(left)
    const isPoll = wait > 0 && !onlyNew
    reserved += limit
    if (isPoll) setPollCap(most)
    try {
      const { deliveries } = await calls.claimDeliveries(
        { workerId, limit, perDestination: most, underWay: open.underWay(), waitMs: wait, onlyNew },
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
      if (isPoll) setPollCap(undefined)
    }
  }

  /** Keeps one claim open while there is room. */
  async function keepClaiming(
    calls: ClaimCalls,
    {
      onlyNew,
      signal,
      backoff,
      onAnswer,
      onFailure,
    }: {
      onlyNew: boolean
      signal: AbortSignal
      backoff: Backoff
      onAnswer?: () => void
      onFailure?: (error: unknown) => void
    },
  ): Promise<void> {
    while (!signal.aborted) {
      // Waits for more room than one place, because a claim for many costs a core hardly more than
      // for one. Offers wait for the poll, so that it reserves places first.
      if (free() < 1 || isStocked() || (onlyNew && pollCap === undefined)) {
        await roomMade.promise
        continue
      }
      // The first claim does not wait, so that `isReady` is known soon.
      const isTight = open.anyFull() || (!onlyNew && cap(free()) < perDestination)
      const wait = !ready && !onlyNew ? 0 : isTight ? Math.min(waitMs, waitWhileFullMs) : waitMs
      const sentAt = performance.now()
      try {
        const claimed = await claim(calls, { wait, signal, onlyNew })
        onAnswer?.()
        // Backs off if a core answers early without work, for example while it stops.
        if (claimed > 0 || performance.now() - sentAt >= wait / 2) backoff.reset()
        else await backoff.pause(signal)
      } catch (error) {
        if (signal.aborted) return
        onFailure?.(error)
        await backoff.pause(signal)
      }
    }
  }

  function poll(): Promise<void> {
    const backoff = options.backoff()
    return keepClaiming(core, {
      onlyNew: false,
      signal: stopped.signal,
      backoff,
      onAnswer() {
        if (!ready) logger.info('cores answer claims')
        ready = true
      },
      onFailure(error) {
        const { code } = ConnectError.from(error)
        if (ready || backoff.failures() === 0)
          logger.warn({ code: Code[code] }, 'claim failed on all cores; retrying with backoff')
        ready = false
      },
    })
  }

  function track(running: Promise<void>) {
    claiming.add(running)
    void running.finally(() => claiming.delete(running))
  }

  /** Opens an offer on the core. Its failures are not logged: the poll logs them. */
  function addOffer(url: string, calls: ClaimCalls) {
    const removed = new AbortController()
    offers.set(url, removed)
    const signal = AbortSignal.any([stopped.signal, removed.signal])
    track(keepClaiming(calls, { onlyNew: true, signal, backoff: options.backoff() }))
  }

  function removeOffer(url: string) {
    offers.get(url)?.abort()
    offers.delete(url)
    makeRoom()
  }

  async function refill(): Promise<void> {
    do {
      refillAgain = false
      if (stopped.signal.aborted) break
      if (free() < 1) {
        // The next `freed` tries again.
        refillAgain = true
        break
      }
      // The poll fails in the same way and logs it.
      await claim(core, { wait: 0, signal: abandon }).catch(() => 0)
    } while (refillAgain)
  }

  function makeRoom(): void {
    roomMade.resolve()
    roomMade = Promise.withResolvers()
  }

  return {
    start() {
      track(poll())
      followCores({ added: addOffer, removed: removeOffer })
    },
    freed(wasFull) {
      makeRoom()
      // The open poll may have been sent a lower limit than is free now.
      const isTight = open.anyFull() || (pollCap ?? perDestination) < perDestination
      if (isStocked() || (!wasFull && !refillAgain && !isTight)) return
      refillAgain = true
      refilling ??= refill().finally(() => {
        refilling = undefined
      })
    },
    isReady: () => ready,
    async stop() {
      stopped.abort()
      makeRoom()
      await Promise.all([...claiming, refilling])
    },
  }
}
