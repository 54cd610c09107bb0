import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { clientNetwork } from '../client-network.ts'
import { GatewayError, type PublicErrorCode, toGatewayError } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { RateLimiter } from '../rate-limiter.ts'

/** Errors that count as refusals: of an origin, a grant and its session, or a site key. */
const REFUSALS: ReadonlySet<PublicErrorCode> = new Set([
  'OriginNotAllowed',
  'OriginMismatch',
  'GrantMissing',
  'GrantInvalid',
  'SessionExpired',
  'SessionClosed',
  'SessionRevoked',
  'VisitorBanned',
  'ConnectionDisabled',
  'InstallationNotFound',
])

/** Limits the refused requests per address, and so the calls to the cores that they cause. */
export interface RefusalLimit {
  /**
   * Runs a check, which may ask a core. Throws `RateLimited` instead if the address has no refusals
   * left, unless the same value was accepted last time.
   *
   * @param kind what is checked
   * @param value the value that the request names
   */
  check<Result>(request: FastifyRequest, kind: CheckKind, value: string, run: () => Promise<Result>): Promise<Result>
}

export type CheckKind = 'origin' | 'grant' | 'site'

export function createRefusalLimit(options: {
  limiter: RateLimiter
  metrics: GatewayMetrics
  /** Most accepted values to remember. */
  acceptedMax: number
}): RefusalLimit {
  const { limiter, metrics } = options
  const accepted = new LRUCache<string, true>({ max: options.acceptedMax })
  /**
   * Running first checks of unknown values, with an error if no core was reachable. Concurrent
   * requests with the same value wait for it, so that a valid value takes one token only.
   */
  const first = new Map<string, Promise<GatewayError | undefined>>()

  async function reserve(address: string): Promise<void> {
    const decision = await limiter.take(address)
    if (decision.allowed) return
    metrics.rateLimited.inc({ limit: 'refusals' })
    throw new GatewayError('RateLimited', { retryAfter: decision.retryAfter })
  }

  /** Takes a token before the check and returns it unless the check is a refusal. */
  async function checkUnknown<Result>(key: string, address: string, run: () => Promise<Result>): Promise<Result> {
    await reserve(address)
    try {
      const result = await run()
      accepted.set(key, true)
      await limiter.giveBack(address)
      return result
    } catch (error) {
      if (!isRefusal(error)) await limiter.giveBack(address)
      throw error
    }
  }

  async function checkAccepted<Result>(key: string, address: string, run: () => Promise<Result>): Promise<Result> {
    try {
      return await run()
    } catch (error) {
      if (isRefusal(error)) {
        accepted.delete(key)
        await limiter.take(address)
      }
      throw error
    }
  }

  return {
    async check(request, kind, value, run) {
      const key = `${kind} ${value}`
      const address = clientNetwork(request.ip)
      const unavailable = await first.get(key)
      if (unavailable !== undefined) throw unavailable
      if (accepted.get(key)) return checkAccepted(key, address, run)
      const result = checkUnknown(key, address, run)
      if (!first.has(key)) {
        const outcome = result.then(() => undefined, unavailabilityOf)
        first.set(key, outcome)
        void outcome.then(() => first.delete(key))
      }
      return result
    },
  }
}

function unavailabilityOf(error: unknown): GatewayError | undefined {
  const failure = toGatewayError(error)
  return failure.code === 'ServiceUnavailable' ? failure : undefined
}

const isRefusal = (error: unknown) => REFUSALS.has(toGatewayError(error).code)
