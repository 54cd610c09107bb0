import type { preHandlerAsyncHookHandler } from 'fastify'
import { clientNetwork } from '../client-network.ts'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { createRateLimiter, type RateLimiter } from '../rate-limiter.ts'
import type { SharedBuckets } from '../shared-rate-limiter.ts'
import { createRefusalLimit, type RefusalLimit } from './refusals.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Which bucket a request takes from: `sends` and `calls` are the session's, the others the client address's. */
    rate?: 'config' | 'sessions' | 'sends' | 'calls' | 'leads' | 'rpc'
  }
}

/** The rate limits of a gateway: the last check of a request, and the bound on refusals. */
export function createRateLimits(
  config: Config,
  deps: {
    now: () => number
    metrics: GatewayMetrics
    /** Counts for several gateways together; without it each counts for itself. */
    shared: SharedBuckets | undefined
  },
): { checkRate: preHandlerAsyncHookHandler; refusals: RefusalLimit } {
  const { now, metrics, shared } = deps
  const limiter = (name: string, perMinute: number, burst = perMinute): RateLimiter => {
    const bounds = { perMinute: perMinute * config.RATE_LIMIT_FACTOR, burst: burst * config.RATE_LIMIT_FACTOR }
    const local = createRateLimiter({ ...bounds, keysMax: config.RATE_LIMIT_KEYS_MAX, now })
    return shared?.limiter({ name, ...bounds, local }) ?? local
  }
  const limiters = {
    config: limiter('config', config.RATE_LIMIT_CONFIG_PER_MINUTE),
    sessions: limiter('sessions', config.RATE_LIMIT_SESSIONS_PER_MINUTE),
    sends: limiter('sends', config.RATE_LIMIT_SENDS_PER_MINUTE, config.RATE_LIMIT_SENDS_BURST),
    calls: limiter('calls', config.RATE_LIMIT_CALLS_PER_MINUTE),
    leads: limiter('leads', config.RATE_LIMIT_LEADS_PER_MINUTE),
    rpc: limiter('rpc', config.RATE_LIMIT_RPC_PER_MINUTE),
  }

  const refusals = createRefusalLimit({
    limiter: limiter('refusals', config.RATE_LIMIT_REFUSALS_PER_MINUTE),
    metrics,
    acceptedMax: config.GRANTS_MAX,
  })

  /** The client has not had more than its share, else `RateLimited`. */
  const checkRate: preHandlerAsyncHookHandler = async (request) => {
    const { rate } = request.routeOptions.config
    if (rate === undefined) return
    const ofSession = rate === 'sends' || rate === 'calls'
    const key = ofSession ? request.visitor!.sessionId : clientNetwork(request.ip)
    const verdict = await limiters[rate].take(key)
    if (verdict.allowed) return
    metrics.rateLimited.inc({ limit: rate })
    throw new GatewayError('RateLimited', { retryAfter: verdict.retryAfter })
  }
  return { checkRate, refusals }
}
