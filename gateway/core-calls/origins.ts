import { GatewayError } from '../errors.ts'
import { type Gateway, perGateway } from '../gateway.ts'
import { createAnswerCache } from './answer-cache.ts'
import { coreOf } from './core-clients.ts'

const ORIGIN_MAX_LENGTH = 512
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/
const DEADLINE_MS = 3_000
const ORIGINS_MAX = 10_000
/** How long an allowed origin is cached. */
const FRESH_MS = 5_000
/** How long its answer is used beyond that while no core is reachable. */
const STALE_MS = 1_000

const answersOf = perGateway(({ clock }) =>
  createAnswerCache<true>({ freshMs: FRESH_MS, staleMs: STALE_MS, maxSize: ORIGINS_MAX, now: clock.now }),
)

/** Whether a fresh cached answer says that at least one enabled installation allows the origin. */
export const isKnownOrigin = (gateway: Gateway, origin: string) => answersOf(gateway).fresh(origin) === true

/**
 * Rejects with `OriginNotAllowed`, or with the error of the core if the core fails and no stale
 * answer is cached.
 */
export async function requireAllowedOrigin(gateway: Gateway, origin: string): Promise<void> {
  if (origin.length > ORIGIN_MAX_LENGTH || !ORIGIN_FORM.test(origin)) throw new GatewayError('OriginNotAllowed')
  await answersOf(gateway).ask(origin, async () => {
    const { allowed } = await coreOf(gateway).sessions.checkOrigin({ origin }, { timeoutMs: DEADLINE_MS })
    if (!allowed) throw new GatewayError('OriginNotAllowed')
    return true
  })
}
