import { LRUCache } from 'lru-cache'
import type { CoreClients } from './core-clients.ts'

/** Answers which origins at least one enabled installation allows. */
export interface Origins {
  /** Rejects with the error of the core if there is no answer, not even a stale one. */
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
/** Short, so that a newly allowed origin works soon. */
const REFUSAL_FRESH_MS = 1_000

/** Caches the answers of the core. Uses a stale answer while no core is reachable. */
export function createOrigins(options: {
  core: CoreClients
  freshMs: number
  max: number
  now: () => number
}): Origins {
  const answers = new LRUCache<string, Answer>({ max: options.max })
  const pending = new Map<string, Promise<boolean>>()

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
      pending.delete(origin)
    }
  }

  return {
    isAllowed(origin) {
      if (origin.length > ORIGIN_MAX_LENGTH || !ORIGIN_FORM.test(origin)) return Promise.resolve(false)
      const answer = answers.get(origin)
      if (answer !== undefined && options.now() < answer.freshUntil) return Promise.resolve(answer.allowed)
      const call = pending.get(origin) ?? ask(origin)
      pending.set(origin, call)
      return call
    },
  }
}
