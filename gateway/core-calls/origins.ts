import { GatewayError } from '../errors.ts'
import { createAnswerCache } from './answer-cache.ts'
import type { CoreClients } from './core-clients.ts'

/** Checks whether at least one enabled installation allows an origin. */
export interface Origins {
  /** Whether the cache has a fresh answer that allows the origin. */
  isKnown(origin: string): boolean
  /**
   * Rejects with `OriginNotAllowed`, or with the error of the core if the core fails and no stale
   * answer is cached.
   */
  require(origin: string): Promise<void>
}

const ORIGIN_MAX_LENGTH = 512
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/
const DEADLINE_MS = 3_000
const ORIGINS_MAX = 10_000
/** How long an allowed origin is cached. */
const FRESH_MS = 5_000
const STALE_MS = 1_000

/** Caches the answers of the core. Uses a stale answer while no core is reachable. */
export function createOrigins(options: { core: CoreClients; now: () => number }): Origins {
  const { core, now } = options
  const answers = createAnswerCache<true>({ freshMs: FRESH_MS, staleMs: STALE_MS, maxSize: ORIGINS_MAX, now })

  return {
    isKnown: (origin) => answers.fresh(origin) === true,
    async require(origin) {
      if (origin.length > ORIGIN_MAX_LENGTH || !ORIGIN_FORM.test(origin)) throw new GatewayError('OriginNotAllowed')
      await answers.ask(origin, async () => {
        const { allowed } = await core.sessions.checkOrigin({ origin }, { timeoutMs: DEADLINE_MS })
        if (!allowed) throw new GatewayError('OriginNotAllowed')
        return true
      })
    },
  }
}
