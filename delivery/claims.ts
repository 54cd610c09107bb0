import { type Client, Code, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { Backoff } from '../platform/concurrency/backoff.ts'
import { inSpan, newTrace } from '../platform/observability/tracing.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { OpenDeliveries } from './open-deliveries.ts'

export interface Claims {
  start(): void
  /**
   * The worker calls this when an attempt has ended.
   *
   * @param needsMore true if the destination of the attempt had no room for another delivery. Claims
   *   that are already open return no deliveries for this destination, so a new claim is sent.
   */
  freed(needsMore: boolean, destination?: string): void
  /** Returns true if a core answered the last claim. */
  isReady(): boolean
  /** Stops claiming. Resolves when no claim is open. */
  stop(): Promise<void>
}

/** Maximum number of deliveries that a core returns per claim. */
const claimMax = 1_000
/**
 * Maximum wait of a claim that is sent while a destination has `perDestination` open deliveries. It
 * is short, because the claim contains limits that are soon outdated.
 */
const waitWhileFullMs = 250

/** Calls the follower for each core that is added or removed, with the URL of the core. */
export type FollowCores = (follower: {
  added(url: string, calls: ClaimCalls): void
  removed(url: string): void
}) => void

interface ClaimOptions {
  wait: number
  signal: AbortSignal
  onlyNew?: boolean
}

type ClaimCalls = Pick<Client<typeof LeadService>, 'claimDeliveries'>

/**
 * Claims deliveries from the cores. A claim reserves places: a place is the capacity of the worker
 * for one delivery. There are three kinds of claims:
 *
 * - At most one poll is open at a time. It waits for deliveries that become due.
 * - At most one offer is open per core. The core answers it only with newly created deliveries,
 *   without reading its queue.
 * - A refill is sent when a full destination has room again. It does not wait. It is needed because
 *   the open poll was sent with a lower limit for this destination.
 *
 * A refill never cancels an open claim, because the core may just have answered it. The deliveries
 * of the lost answer would be blocked until their leases expire.
 */
export function createClaims(options: {
  /** Client for the pool of cores. */
  core: ClaimCalls
  followCores: FollowCores
  workerId: string
  perDestination: number
  waitMs: number
  /** Timeout of a claim, in addition to its wait. */
  answerWithinMs: number
  backoff: () => Backoff
  open: OpenDeliveries
  /** Number of deliveries to claim in advance, for each destination that answers quickly. */
  ahead: () => Record<string, number>
  /**
   * Number of deliveries that the worker has room for. Places that open claims reserve are
   * included.
   */
  room: () => number
  /** Returns true if the worker has enough waiting deliveries, so that it need not claim now. */
  isStocked: () => boolean
  onClaimed: (deliveries: ClaimedDelivery[]) => void
  /** Aborts open claims. A stopping worker triggers it after its grace time. */
  abandon: AbortSignal
  metrics: DeliveryMetrics
  logger: Logger
}): Claims {
  const { core, followCores, workerId, perDestination, waitMs, answerWithinMs, open, room, isStocked, onClaimed } =
    options
  const { ahead, abandon, metrics, logger } = options
  const stopped = new AbortController()
  let reserved = 0
  let pollCap: number | undefined
  /** Destinations for which the open poll returns no deliveries. */
  let skippedByPoll = new Set<string>()
  let ready = false
  let roomMade = Promise.withResolvers<void>()
  const claiming = new Set<Promise<void>>()
  const offers = new Map<string, AbortController>()
  let refilling: Promise<void> | undefined
  let refillAgain = false

  const free = () => room() - reserved
  // `share` and `cap` limit a claim, so that some places stay free even if many destinations hang.
  // `left` is the number of free places. A claim reserves at most `share` of them. `cap` is the
  // maximum number of deliveries per destination. It is half of the places that the claim leaves
  // free, but at least 1 and at most `perDestination`. For a refill, places that the open poll
  // reserves count as free.
  const share = (left: number) => Math.min(claimMax, Math.max(Math.ceil(left / 2), left - 2 * perDestination))
  const cap = (left: number) => Math.max(1, Math.min(perDestination, Math.floor((left - share(left)) / 2)))

  /**
   * Stores the limit per destination with which the open poll was sent. Undefined means that no
   * poll is open.
   */
  function setPollCap(limit: number | undefined) {
    pollCap = limit
    if (limit !== undefined) makeRoom()
  }

  const claim = (calls: ClaimCalls, claimOptions: ClaimOptions) =>
    inSpan('claim deliveries', { parent: newTrace }, () => sendClaim(calls, claimOptions))

  async function sendClaim(calls: ClaimCalls, { wait, signal, onlyNew = false }: ClaimOptions): Promise<number> {
    const left = free()
    const limit = onlyNew ? Math.min(share(left), perDestination) : share(left)
    const isPoll = wait > 0 && !onlyNew
    const most = cap(isPoll || onlyNew ? left : room())
    reserved += limit
    if (isPoll) {
      skippedByPoll = open.full()
      setPollCap(most)
    }
    try {
      const { deliveries } = await calls.claimDeliveries(
        {
          workerId,
          limit,
          perDestination: most,
          underWay: open.underWay(),
          ahead: ahead(),
          waitMs: wait,
          onlyNew,
        },
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

  /** Sends one claim after another while the worker has room. */
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
      // Waits until enough places are free, because a claim for many deliveries costs a core hardly
      // more than a claim for one. Offers wait until the poll is open, so that the poll reserves
      // places first.
      if (free() < 1 || isStocked() || (onlyNew && pollCap === undefined)) {
        await roomMade.promise
        continue
      }
      // Until a core has answered, polls do not wait for deliveries, so that the worker is soon
      // ready.
      const isTight = open.anyFull() || (!onlyNew && cap(free()) < perDestination)
      const wait = !ready && !onlyNew ? 0 : isTight ? Math.min(waitMs, waitWhileFullMs) : waitMs
      const sentAt = performance.now()
      try {
        const claimed = await claim(calls, { wait, signal, onlyNew })
        onAnswer?.()
        // Backs off if a core returns no deliveries before the wait is over, for example while it
        // stops.
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
        if (!ready) logger.info('a core answered a claim; delivery worker is ready')
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

  /** Opens an offer on the core. Failures are not logged, because the poll logs failed claims. */
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
        // No places are free. The next call of `freed` sends the refill.
        refillAgain = true
        break
      }
      // A failure is ignored, because the poll fails for the same reason and logs it.
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
    freed(needsMore, destination = '') {
      makeRoom()
      // If the open poll was sent with a low limit per destination, a new claim may return more.
      const isTight = open.anyFull() || (pollCap ?? perDestination) < perDestination
      const isSkipped = skippedByPoll.has(destination)
      if (isStocked() || (!needsMore && !isSkipped && !refillAgain && !isTight)) return
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
