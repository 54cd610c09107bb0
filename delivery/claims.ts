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

/** Tells of each core that there is, as it comes and goes; by its URL. */
export type FollowCores = (follower: {
  added(url: string, calls: ClaimCalls): void
  removed(url: string): void
}) => void

interface HowToAsk {
  wait: number
  signal: AbortSignal
  onlyNew?: boolean
}

export type ClaimCalls = Pick<Client<typeof LeadService>, 'claimDeliveries'>

/**
 * Keeps asking the cores for work, in three ways at once. A poll is always open and waits for what becomes due. An offer is left with
 * each core, which hands it what it keeps next without the queue in between. A refill takes what is due at once, whenever a full
 * destination has room again: the open calls were told that it is full. An open call is never broken off for that, since the
 * deliveries of an answer on its way would be lost until their leases end.
 */
export function createClaims(options: {
  /** Whichever core is in turn. */
  core: ClaimCalls
  followCores: FollowCores
  workerId: string
  perDestination: number
  waitMs: number
  /** Time for an answer, on top of the waiting. */
  answerWithinMs: number
  backoff: () => Backoff
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
  const { core, followCores, workerId, perDestination, waitMs, answerWithinMs, open, room, isStocked, onClaimed } =
    options
  const { abandon, metrics, logger } = options
  const stopped = new AbortController()
  let reserved = 0
  let polled: number | undefined
  let ready = false
  let roomMade = Promise.withResolvers<void>()
  const asking = new Set<Promise<void>>()
  const offers = new Map<string, AbortController>()
  let refilling: Promise<void> | undefined
  let refillAgain = false

  const free = () => room() - reserved
  // However many destinations hang, they never have all places: one claim takes a part of those that are left, and
  // gives none of the destinations more than half of what is left after it.
  const share = (left: number) => Math.min(claimMax, Math.max(Math.ceil(left / 2), left - 2 * perDestination))
  const cap = (left: number) => Math.max(1, Math.min(perDestination, Math.floor((left - share(left)) / 2)))

  /** The open poll, by the most of one destination that it was told to take; undefined while none is open. */
  function setPolled(limit: number | undefined) {
    polled = limit
    if (limit !== undefined) makeRoom()
  }

  const claim = (calls: ClaimCalls, how: HowToAsk) =>
    inSpan('claim deliveries', { parent: newTrace }, () => ask(calls, how))

  async function ask(calls: ClaimCalls, { wait, signal, onlyNew = false }: HowToAsk): Promise<number> {
    const left = free()
    const limit = onlyNew ? Math.min(share(left), perDestination) : share(left)
    const most = cap(left)
    const isPoll = wait > 0 && !onlyNew
    reserved += limit
    if (isPoll) setPolled(most)
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
      if (isPoll) setPolled(undefined)
    }
  }

  /** Keeps one call open as long as there is room. */
  async function keepAsking(
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
      // Not each time that a place is free: many at once cost the cores hardly more than one. And what offers reserve is not the
      // poll's, which comes first.
      if (free() < 1 || isStocked() || (onlyNew && polled === undefined)) {
        await roomMade.promise
        continue
      }
      // The first one does not wait, so that whoever asks soon knows whether the cores answer.
      const isTight = open.anyFull() || (!onlyNew && cap(free()) < perDestination)
      const wait = !ready && !onlyNew ? 0 : isTight ? Math.min(waitMs, waitWhileFullMs) : waitMs
      const askedAt = performance.now()
      try {
        const claimed = await claim(calls, { wait, signal, onlyNew })
        onAnswer?.()
        // A core that does not wait, as one that is stopping, is not asked in circles.
        if (claimed > 0 || performance.now() - askedAt >= wait / 2) backoff.reset()
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
    return keepAsking(core, {
      onlyNew: false,
      signal: stopped.signal,
      backoff,
      onAnswer() {
        if (!ready) logger.info('the cores answer')
        ready = true
      },
      onFailure(error) {
        const { code } = ConnectError.from(error)
        if (ready || backoff.failures() === 0) logger.warn({ code: Code[code] }, 'no core gives work')
        ready = false
      },
    })
  }

  function keep(running: Promise<void>) {
    asking.add(running)
    void running.finally(() => asking.delete(running))
  }

  /** Leaves an offer with the core. That one is out of reach shows in the other calls. */
  function addOffer(url: string, calls: ClaimCalls) {
    const gone = new AbortController()
    offers.set(url, gone)
    const signal = AbortSignal.any([stopped.signal, gone.signal])
    keep(keepAsking(calls, { onlyNew: true, signal, backoff: options.backoff() }))
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
        // For the next one that is done.
        refillAgain = true
        break
      }
      // The poll meets the same failure and says so.
      await claim(core, { wait: 0, signal: abandon }).catch(() => 0)
    } while (refillAgain)
  }

  function makeRoom(): void {
    roomMade.resolve()
    roomMade = Promise.withResolvers()
  }

  return {
    start() {
      keep(poll())
      followCores({ added: addOffer, removed: removeOffer })
    },
    freed(wasFull) {
      makeRoom()
      // The open poll may have been told of less room than there is now.
      const isTight = open.anyFull() || (polled ?? perDestination) < perDestination
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
      await Promise.all([...asking, refilling])
    },
  }
}
