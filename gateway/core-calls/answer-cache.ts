import type { PublicErrorCode } from '../../contract/errors.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import { isRefusal } from '../limits/refusals.ts'

interface Known<Value> {
  value: Value
  askedAt: number
}

const REFUSED_MAX = 10_000
/** How long a refusal is cached. The time is short, so that a newly allowed site works soon. */
const REFUSED_MS = 500

/**
 * Caches answers and refusals of cores by key. Refusals are apart, so that random keys do not evict
 * accepted answers. Other failures are not cached. An age counts from the start of the call.
 */
export function createAnswerCache<Answer extends object | boolean>(options: {
  freshMs: number
  /** If a call fails without a refusal, the last answer is used for this time. Default: 0. */
  staleMs?: number
  maxSize: number
  /** Returns the part of `maxSize` that an answer takes. Default: 1. */
  sizeOf?: (answer: Answer) => number
  now: () => number
}) {
  const { freshMs, staleMs = 0, sizeOf = () => 1, now } = options
  const accepted = createLruCache<Known<Answer>>(options.maxSize, ({ value }) => sizeOf(value))
  const refused = createLruCache<Known<PublicErrorCode>>(REFUSED_MAX)
  const asking = new Map<string, Promise<Answer>>()

  /** A negative age is too old, because a clock that was set back must not prolong an answer. */
  function isWithin(maxAgeMs: number, askedAt: number) {
    const age = now() - askedAt
    return age >= 0 && age < maxAgeMs
  }

  function fresh(key: string) {
    const known = accepted.get(key)
    return known !== undefined && isWithin(freshMs, known.askedAt) ? known.value : undefined
  }

  async function askCore(key: string, question: () => Promise<Answer>) {
    const askedAt = now()
    try {
      const value = await question()
      accepted.set(key, { value, askedAt })
      return value
    } catch (error) {
      const stale = accepted.get(key)
      if (isRefusal(error)) {
        accepted.delete(key)
        refused.set(key, { value: toGatewayError(error).code, askedAt })
      } else if (staleMs > 0 && stale !== undefined) {
        accepted.set(key, { ...stale, askedAt: askedAt - freshMs + staleMs })
        return stale.value
      }
      throw error
    } finally {
      asking.delete(key)
    }
  }

  return {
    fresh,
    /** Returns the fresh answer, or asks a core; concurrent requests of a key share one call. */
    async ask(key: string, question: () => Promise<Answer>) {
      const known = fresh(key)
      if (known !== undefined) return known
      const refusal = refused.get(key)
      if (refusal !== undefined && isWithin(REFUSED_MS, refusal.askedAt))
        throw new GatewayError(refusal.value, { decidedBy: 'core' })
      const answer = asking.get(key) ?? askCore(key, question)
      if (!asking.has(key)) asking.set(key, answer)
      return answer
    },
  }
}
