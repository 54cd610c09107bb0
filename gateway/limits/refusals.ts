import type { FastifyRequest } from 'fastify'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { clientNetwork } from '../../platform/addresses/client-network.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { perGateway } from '../gateway.ts'
import { enforce, limiterOf } from './rate-limits.ts'

/** Errors of a grant and of its session, except that the grant has expired. */
export const SESSION_REFUSALS: PublicErrorCode[] = [
  'GrantMissing',
  'GrantInvalid',
  'OriginMismatch',
  'SessionExpired',
  'SessionClosed',
  'SessionRevoked',
  'VisitorBanned',
  'ConnectionDisabled',
]
const OTHER_REFUSALS: PublicErrorCode[] = ['GrantExpired', 'OriginNotAllowed', 'InstallationNotFound']
const REFUSALS = new Set([...SESSION_REFUSALS, ...OTHER_REFUSALS])

/** Number of grants to cache, and of accepted values to remember. */
export const GRANTS_MAX = 50_000

/** Limits refused requests per address, because each may cause calls to cores. */
const refusalLimitOf = perGateway((gateway) => {
  const limiter = limiterOf(gateway, 'refusals')
  const accepted = createLruCache<true>(GRANTS_MAX)
  /**
   * The running first checks, by value. Each resolves to an error if no core was reachable. Concurrent
   * requests wait for it, so that a valid value takes only one token.
   */
  const first = new Map<string, Promise<GatewayError | undefined>>()

  /** Takes a token, and gives it back unless the check ends with a refusal. */
  async function checkUnknown<Result>(key: string, address: string, run: () => Promise<Result>) {
    enforce(gateway, 'refusals', await limiter.take(address))
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

  async function checkAccepted<Result>(key: string, address: string, run: () => Promise<Result>) {
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

  return async function check<Result>(key: string, address: string, run: () => Promise<Result>) {
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
  }
})

/**
 * Calls `run`, which checks a value and may ask a core; throws `RateLimited` instead if too many requests
 * of the address were refused. Values that passed their last check are exempt.
 */
export const limitRefusals = <Result>(
  request: FastifyRequest,
  kind: 'origin' | 'grant' | 'site',
  value: string,
  run: () => Promise<Result>,
): Promise<Result> => refusalLimitOf(request.server.gateway)(`${kind} ${value}`, clientNetwork(request.ip), run)

function unavailabilityOf(error: unknown) {
  const failure = toGatewayError(error)
  return failure.code === 'ServiceUnavailable' ? failure : undefined
}

/** Whether an error says that an origin, grant, session or site key is not accepted. */
export const isRefusal = (error: unknown) => REFUSALS.has(toGatewayError(error).code)
