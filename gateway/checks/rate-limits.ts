import { clientNetwork } from '../../platform/addresses/client-network.ts'
import type { Config } from '../config.ts'
import { GRANTS_MAX } from '../core-calls/grant-cache.ts'
import { GatewayError } from '../errors.ts'
import { createRateLimiter, type RateDecision, type RateLimiter } from '../limits/rate-limiter.ts'
import { createRefusalLimit, type RefusalLimit } from '../limits/refusals.ts'
import type { SharedBuckets } from '../limits/shared-rate-limiter.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { Check } from './in-order.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The rate limit of the route. `sends`, `calls` and `presence` count per session, the others per
     * client address.
     */
    rate?: 'config' | 'pictures' | 'sessions' | 'sends' | 'calls' | 'presence' | 'leads' | 'rpc'
  }
}

/** Maximum number of addresses or sessions with a bucket per limit. */
const KEYS_MAX = 100_000
/** Reports of presence per session and minute. A tab that shows the chat sends 30. */
const PRESENCE_PER_MINUTE = 120

/** Creates the rate limits: the last check of a request, and the limit on refusals. */
export function createRateLimits(
  config: Config,
  deps: {
    now: () => number
    metrics: GatewayMetrics
    /** Buckets that several gateways share. If undefined, each gateway has its own buckets. */
    shared: SharedBuckets | undefined
  },
): { checkRate: Check; refusals: RefusalLimit } {
  const { now, metrics, shared } = deps
  const limiter = (name: string, perMinute: number, burst = perMinute): RateLimiter => {
    const bounds = { perMinute: perMinute * config.RATE_LIMIT_FACTOR, burst: burst * config.RATE_LIMIT_FACTOR }
    const local = createRateLimiter({ ...bounds, keysMax: KEYS_MAX, now })
    return shared?.limiter({ name, ...bounds, local }) ?? local
  }
  const limiters = {
    config: limiter('config', config.RATE_LIMIT_CONFIG_PER_MINUTE),
    pictures: limiter('pictures', config.RATE_LIMIT_CONFIG_PER_MINUTE),
    sessions: limiter('sessions', config.RATE_LIMIT_SESSIONS_PER_MINUTE),
    sends: limiter('sends', config.RATE_LIMIT_SENDS_PER_MINUTE, config.RATE_LIMIT_SENDS_BURST),
    calls: limiter('calls', config.RATE_LIMIT_CALLS_PER_MINUTE),
    presence: limiter('presence', PRESENCE_PER_MINUTE),
    leads: limiter('leads', config.RATE_LIMIT_LEADS_PER_MINUTE),
    rpc: limiter('rpc', config.RATE_LIMIT_RPC_PER_MINUTE),
  }

  const refusals = createRefusalLimit({
    limiter: limiter('refusals', config.RATE_LIMIT_REFUSALS_PER_MINUTE),
    metrics,
    acceptedMax: GRANTS_MAX,
  })

  /** Rejects a request above its rate limit with `RateLimited`. */
  const checkRate: Check = (request) => {
    const { rate } = request.routeOptions.config
    if (rate === undefined) return
    const isPerSession = rate === 'sends' || rate === 'calls' || rate === 'presence'
    const key = isPerSession ? request.visitor!.sessionId : clientNetwork(request.ip)
    const decision = limiters[rate].take(key)
    if (decision instanceof Promise) return decision.then((made) => enforce(made, rate))
    enforce(decision, rate)
  }

  function enforce(decision: RateDecision, limit: string): void {
    if (decision.allowed) return
    metrics.rateLimited.inc({ limit })
    throw new GatewayError('RateLimited', { retryAfter: decision.retryAfter })
  }
  return { checkRate, refusals }
}
