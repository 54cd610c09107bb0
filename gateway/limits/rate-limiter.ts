import { createLruCache } from '../../platform/lru-cache.ts'

/** Limits requests per key. `take` may wait for a store outside the process. */
export interface RateLimiter {
  /** Takes a token. Returns 0, or the seconds until there is one. */
  take(key: string): number | Promise<number>
  giveBack(key: string): void | Promise<void>
}

/**
 * Token buckets in memory. Each key has `burst` tokens and regains `perMinute`. Above `keysMax`, the least
 * recently used key is evicted and begins with a full bucket.
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
    take(key: string) {
      const now = options.now()
      const tokens = tokensOf(key, now)
      const allowed = tokens >= 1
      buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, at: now })
      return allowed ? 0 : Math.max(1, Math.ceil((1 - tokens) / perMs / 1000))
    },
    giveBack(key: string) {
      const now = options.now()
      buckets.set(key, { tokens: Math.min(capacity, tokensOf(key, now) + 1), at: now })
    },
  }
}
