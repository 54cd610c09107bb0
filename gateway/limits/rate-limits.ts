import type { FastifyRequest } from 'fastify'
import { clientNetwork } from '../../platform/addresses/client-network.ts'
import { GatewayError } from '../errors.ts'
import { type Gateway, perGateway } from '../gateway.ts'
import type { Check } from '../in-order.ts'
import { createRateLimiter, type RateLimiter } from './rate-limiter.ts'
import { createSharedBuckets } from './shared-rate-limiter.ts'

/** Addresses or sessions that have a bucket, per limit. */
const KEYS_MAX = 100_000
/** Reports of presence per session. A tab that shows the chat sends 30. */
const PRESENCE_PER_MINUTE = 120

type RateLimit = keyof ReturnType<typeof limitersOf>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The rate limit: `sends`, `calls` and `presence` count per session, the others per client address. */
    rate?: RateLimit
  }
}

/** Buckets that several gateways share; if undefined, each gateway counts alone. */
export const sharedBucketsOf = perGateway(({ config: { RATE_LIMIT_REDIS_URL: url }, clock: { now }, logger }) =>
  url === '' ? undefined : createSharedBuckets({ url, now, logger }),
)

const limitersOf = perGateway((gateway) => {
  const { config, clock } = gateway
  const limiter = (name: string, perMinute: number, burst = perMinute): RateLimiter => {
    const bounds = { perMinute: perMinute * config.RATE_LIMIT_FACTOR, burst: burst * config.RATE_LIMIT_FACTOR }
    const local = createRateLimiter({ ...bounds, keysMax: KEYS_MAX, now: clock.now })
    return sharedBucketsOf(gateway)?.limiter({ name, ...bounds, local }) ?? local
  }
  return {
    config: limiter('config', config.RATE_LIMIT_CONFIG_PER_MINUTE),
    pictures: limiter('pictures', config.RATE_LIMIT_CONFIG_PER_MINUTE),
    sessions: limiter('sessions', config.RATE_LIMIT_SESSIONS_PER_MINUTE),
    sends: limiter('sends', config.RATE_LIMIT_SENDS_PER_MINUTE, config.RATE_LIMIT_SENDS_BURST),
    calls: limiter('calls', config.RATE_LIMIT_CALLS_PER_MINUTE),
    presence: limiter('presence', PRESENCE_PER_MINUTE),
    leads: limiter('leads', config.RATE_LIMIT_LEADS_PER_MINUTE),
    rpc: limiter('rpc', config.RATE_LIMIT_RPC_PER_MINUTE),
    bots: limiter('bots', config.RATE_LIMIT_BOTS_PER_MINUTE),
    refusals: limiter('refusals', config.RATE_LIMIT_REFUSALS_PER_MINUTE),
  }
})

export const limiterOf = (gateway: Gateway, limit: RateLimit): RateLimiter => limitersOf(gateway)[limit]

/** `retryAfter` is what `take` has returned. */
export function enforce({ metrics }: Gateway, limit: RateLimit, retryAfter: number) {
  if (retryAfter === 0) return
  metrics.rateLimited.inc({ limit })
  throw new GatewayError('RateLimited', { retryAfter })
}

/** Rejects a request above its rate limit with `RateLimited`. The last check of a request. */
export const checkRate: Check = (request) => {
  const { rate } = request.routeOptions.config
  if (rate !== undefined) return takeRate(request, rate)
}

export function takeRate(request: FastifyRequest, rate: RateLimit): void | Promise<void> {
  const { gateway } = request.server
  const isPerSession = rate === 'sends' || rate === 'calls' || rate === 'presence'
  const key = isPerSession ? request.visitor!.sessionId : clientNetwork(request.ip)
  const taken = limiterOf(gateway, rate).take(key)
  if (taken instanceof Promise) return taken.then((retryAfter) => enforce(gateway, rate, retryAfter))
  enforce(gateway, rate, taken)
}
