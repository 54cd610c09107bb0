import { LRUCache } from 'lru-cache'

/** Whether one more is allowed now, and if not, after how many whole seconds (at least 1) it will be. */
export type Verdict = { allowed: true } | { allowed: false; retryAfter: number }

/** Counts what a key takes. A promise is allowed for, so that a store outside the process fits too. */
export interface RateLimiter {
  take(key: string): Verdict | Promise<Verdict>
  /** Returns one that was taken. */
  giveBack(key: string): void | Promise<void>
}

interface Bucket {
  tokens: number
  at: number
}

/**
 * Token buckets in memory: each key has `burst` tokens and gets `perMinute` back in a minute.
 * The key used longest ago is forgotten when there are more than `keysMax`, which gives it a full bucket.
 */
export function createRateLimiter(options: {
  perMinute: number
  burst: number
  keysMax: number
  now: () => number
}): RateLimiter {
  const perMs = options.perMinute / 60_000
  const capacity = Math.max(1, options.burst)
  const buckets = new LRUCache<string, Bucket>({ max: options.keysMax })

  function tokensOf(key: string, now: number): number {
    const bucket = buckets.get(key)
    if (bucket === undefined) return capacity
    // A clock that was set back must not take tokens away.
    return Math.min(capacity, bucket.tokens + Math.max(0, now - bucket.at) * perMs)
  }

  return {
    take(key) {
      const now = options.now()
      const tokens = tokensOf(key, now)
      const allowed = tokens >= 1
      buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, at: now })
      return allowed ? { allowed } : { allowed, retryAfter: Math.max(1, Math.ceil((1 - tokens) / perMs / 1000)) }
    },
    giveBack(key) {
      const now = options.now()
      buckets.set(key, { tokens: Math.min(capacity, tokensOf(key, now) + 1), at: now })
    },
  }
}
