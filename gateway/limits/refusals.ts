import type { FastifyRequest } from 'fastify'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { clientNetwork } from '../../platform/addresses/client-network.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { RateLimiter } from './rate-limiter.ts'

/** Errors that count as refusals: the origin, grant, session or site key is invalid. */
const REFUSALS: ReadonlySet<PublicErrorCode> = new Set([
  'OriginNotAllowed',
  'OriginMismatch',
  'GrantMissing',
  'GrantInvalid',
  'GrantExpired',
  'SessionExpired',
  'SessionClosed',
  'SessionRevoked',
  'VisitorBanned',
  'ConnectionDisabled',
  'InstallationNotFound',
])

/** Limits refused requests per client address, because each may cause calls to the cores. */
export interface RefusalLimit {
  /**
   * Calls `run`, which checks a value of the request and may ask a core. If too many requests of
   * the client's address were refused, throws `RateLimited` instead of calling `run`. Values that
   * passed their last check are exempt from this limit.
   *
   * @param kind kind of the value: an origin, an access grant or a site key
   * @param value the value in the request
   */
  check<Result>(request: FastifyRequest, kind: CheckKind, value: string, run: () => Promise<Result>): Promise<Result>
}

type CheckKind = 'origin' | 'grant' | 'site'

export function createRefusalLimit(options: {
  limiter: RateLimiter
  metrics: GatewayMetrics
  /** Maximum number of accepted origins, grants and site keys to remember. */
  acceptedMax: number
}): RefusalLimit {
  const { limiter, metrics } = options
  const accepted = createLruCache<true>(options.acceptedMax)
  /**
   * The running first checks of origins, grants and site keys. Each promise resolves to an error if
   * no core was reachable, else to undefined. Concurrent requests with the same value wait for this
   * check, so that a valid value takes only one token of the limiter.
   */
  const first = new Map<string, Promise<GatewayError | undefined>>()

  async function reserve(address: string): Promise<void> {
    const decision = await limiter.take(address)
    if (decision.allowed) return
    metrics.rateLimited.inc({ limit: 'refusals' })
    throw new GatewayError('RateLimited', { retryAfter: decision.retryAfter })
  }

  /** Takes a token before the check. Gives the token back unless the check ends with a refusal. */
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

/** Whether an error says that an origin, grant, session or site key is not accepted. */
export const isRefusal = (error: unknown) => REFUSALS.has(toGatewayError(error).code)
