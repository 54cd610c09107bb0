import { createLruCache } from '../../platform/lru-cache.ts'

/** Whether a request is allowed. If not, `retryAfter` is the wait in whole seconds, at least 1. */
export type RateDecision = { allowed: true } | { allowed: false; retryAfter: number }

/** Limits requests per key. May be asynchronous, for a store outside the process. */
export interface RateLimiter {
  take(key: string): RateDecision | Promise<RateDecision>
  /** Puts a taken token back into the bucket. */
  giveBack(key: string): void | Promise<void>
}

/**
 * Creates token buckets in memory. Each key has `burst` tokens and regains `perMinute` per minute.
 * If there are more than `keysMax` keys, the least recently used key is evicted. Its next request
 * gets a full bucket.
 */
export function createRateLimiter(options: { perMinute: number; burst: number; keysMax: number; now: () => number }) {
  const perMs = options.perMinute / 60_000
  const capacity = Math.max(1, options.burst)
  const buckets = createLruCache<{ tokens: number; at: number }>(options.keysMax)

  function tokensOf(key: string, now: number) {
    const bucket = buckets.get(key)
    if (bucket === undefined) return capacity
    // A clock that was set back must not remove tokens.
    return Math.min(capacity, bucket.tokens + Math.max(0, now - bucket.at) * perMs)
  }

  return {
    take(key: string): RateDecision {
      const now = options.now()
      const tokens = tokensOf(key, now)
      const allowed = tokens >= 1
      buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, at: now })
      return allowed ? { allowed } : { allowed, retryAfter: Math.max(1, Math.ceil((1 - tokens) / perMs / 1000)) }
    },
    giveBack(key: string) {
      const now = options.now()
      buckets.set(key, { tokens: Math.min(capacity, tokensOf(key, now) + 1), at: now })
    },
  }
}
