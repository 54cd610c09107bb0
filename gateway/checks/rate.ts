import type { preHandlerAsyncHookHandler } from 'fastify'
import { clientNetwork } from '../client-network.ts'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { createRateLimiter } from '../rate-limiter.ts'
import type { SharedBuckets } from '../shared-rate-limiter.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Which bucket a request takes from: `bootstrap` is the client address's, the others are the session's. */
    rate?: 'bootstrap' | 'sends' | 'calls'
  }
}

/**
 * Last check: the client has not had more than its share, else `RateLimited`.
 *
 * @param shared counts for several gateways together; without it each counts for itself
 */
export function createRateCheck(config: Config, now: () => number, shared?: SharedBuckets): preHandlerAsyncHookHandler {
  const limiter = (name: string, perMinute: number, burst = perMinute) => {
    const bounds = { perMinute: perMinute * config.RATE_LIMIT_FACTOR, burst: burst * config.RATE_LIMIT_FACTOR }
    const local = createRateLimiter({ ...bounds, keysMax: config.RATE_LIMIT_KEYS_MAX, now })
    return shared?.limiter({ name, ...bounds, local }) ?? local
  }
  const limiters = {
    bootstrap: limiter('bootstrap', config.RATE_LIMIT_BOOTSTRAP_PER_MINUTE),
    sends: limiter('sends', config.RATE_LIMIT_SENDS_PER_MINUTE, config.RATE_LIMIT_SENDS_BURST),
    calls: limiter('calls', config.RATE_LIMIT_CALLS_PER_MINUTE),
  }

  return async (request) => {
    const { rate } = request.routeOptions.config
    if (rate === undefined) return
    const key = rate === 'bootstrap' ? clientNetwork(request.ip) : request.visitor!.sessionId
    const verdict = await limiters[rate].take(key)
    if (!verdict.allowed) throw new GatewayError('RateLimited', { retryAfter: verdict.retryAfter })
  }
}
