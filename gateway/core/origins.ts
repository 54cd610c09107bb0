import { LRUCache } from 'lru-cache'
import type { Core } from './core.ts'

/** Which origins some enabled installation allows. */
export interface Origins {
  /** Rejects with the core's error when it cannot be known. */
  isAllowed(origin: string): Promise<boolean>
}

interface Answer {
  allowed: boolean
  freshUntil: number
}

const ORIGIN_MAX_LENGTH = 512
const ORIGIN_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/
const DEADLINE_MS = 3_000
const STALE_MS = 1_000
/** An origin that an operator allows now is let in at once. */
const REFUSAL_FRESH_MS = 1_000

/** Asks the core about an origin and keeps the answer; an old answer is used while no core is within reach. */
export function createOrigins(options: { core: Core; freshMs: number; max: number; now: () => number }): Origins {
  const answers = new LRUCache<string, Answer>({ max: options.max })
  const asked = new Map<string, Promise<boolean>>()

  async function ask(origin: string): Promise<boolean> {
    const askedAt = options.now()
    try {
      const { allowed } = await options.core.sessions.checkOrigin({ origin }, { timeoutMs: DEADLINE_MS })
      const freshMs = allowed ? options.freshMs : Math.min(options.freshMs, REFUSAL_FRESH_MS)
      answers.set(origin, { allowed, freshUntil: askedAt + freshMs })
      return allowed
    } catch (error) {
      const stale = answers.get(origin)
      if (stale === undefined) throw error
      stale.freshUntil = options.now() + STALE_MS
      return stale.allowed
    } finally {
      asked.delete(origin)
    }
  }

  return {
    isAllowed(origin) {
      if (origin.length > ORIGIN_MAX_LENGTH || !ORIGIN_FORM.test(origin)) return Promise.resolve(false)
      const answer = answers.get(origin)
      if (answer !== undefined && options.now() < answer.freshUntil) return Promise.resolve(answer.allowed)
      const pending = asked.get(origin) ?? ask(origin)
      asked.set(origin, pending)
      return pending
    },
  }
}
