import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { clientNetwork } from '../client-network.ts'
import { GatewayError, type PublicErrorCode, toGatewayError } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { RateLimiter } from '../rate-limiter.ts'

/** Failures that take from the bucket: of an origin, of a grant and its session, of a site key. */
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

/** Bounds the refused requests of an address, so that they cost a bounded number of calls to the cores. */
export interface RefusalLimit {
  /**
   * Runs a check, which may ask a core. Throws `RateLimited` instead when the address has used up its refusals, unless the
   * same value was accepted the last time.
   *
   * @param kind what is checked, and `value` what the request names
   */
  check<Result>(request: FastifyRequest, kind: CheckKind, value: string, run: () => Promise<Result>): Promise<Result>
}

export type CheckKind = 'origin' | 'grant' | 'site'

export function createRefusalLimit(options: {
  limiter: RateLimiter
  metrics: GatewayMetrics
  /** Values that are remembered as accepted. */
  acceptedMax: number
}): RefusalLimit {
  const { limiter, metrics } = options
  const accepted = new LRUCache<string, true>({ max: options.acceptedMax })
  /**
   * First checks of a value, and whether no core was within reach. The next ones wait, so that a good value takes one token
   * however many requests bring it.
   */
  const first = new Map<string, Promise<GatewayError | undefined>>()

  async function reserve(address: string): Promise<void> {
    const verdict = await limiter.take(address)
    if (verdict.allowed) return
    metrics.rateLimited.inc({ limit: 'refusals' })
    throw new GatewayError('RateLimited', { retryAfter: verdict.retryAfter })
  }

  /** Takes the token before the check, and gives it back if the check is no refusal. */
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
