import { LRUCache } from 'lru-cache'
import type { CoreClients } from './core-clients.ts'

/** Checks whether at least one enabled installation allows an origin. */
export interface Origins {
  /** Rejects with the error of the core if the core fails and no stale answer is cached. */
  isAllowed(origin: string): Promise<boolean>
}

const ORIGIN_MAX_LENGTH = 512
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/
const DEADLINE_MS = 3_000
const ORIGINS_MAX = 10_000
/** How long an allowed origin is cached. */
const FRESH_MS = 5_000
const STALE_MS = 1_000
/**
 * How long a refused origin is cached. The time is short, so that a newly allowed origin works
 * soon.
 */
const REFUSAL_FRESH_MS = 1_000

/** Caches the answers of the core. Uses a stale answer while no core is reachable. */
export function createOrigins(options: { core: CoreClients; now: () => number }): Origins {
  const { core, now } = options
  const answers = new LRUCache<string, boolean>({
    max: ORIGINS_MAX,
    perf: { now },
    ttlResolution: 0,
    async fetchMethod(origin, stale, { options }) {
      const askedAt = now()
      try {
        const { allowed } = await core.sessions.checkOrigin({ origin }, { timeoutMs: DEADLINE_MS })
        // The time to live counts from the start of the call. It is at least 1, because 0 means no
        // expiry.
        options.ttl = Math.max(1, askedAt + (allowed ? FRESH_MS : REFUSAL_FRESH_MS) - now())
        return allowed
      } catch (error) {
        if (stale === undefined) throw error
        options.ttl = STALE_MS
        return stale
      }
    },
  })

  return {
    async isAllowed(origin) {
      if (origin.length > ORIGIN_MAX_LENGTH || !ORIGIN_FORM.test(origin)) return false
      return (await answers.fetch(origin)) === true
    },
  }
}
