import { createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import type { Core } from '../core.ts'
import { wakeupsOf } from './wakeups.ts'

/** Default maximum age in milliseconds. It bounds the delay of a change whose wake-up was lost. */
const defaultMaxAgeMs = 5_000
/**
 * Maximum age if `Wakeups.changing` makes every change that may not wait. No such change can remain
 * unknown, even if a core dies before its wake-up.
 */
export const announcedMaxAgeMs = 60_000

interface CacheOptions<V> {
  loadMany: (keys: string[]) => Promise<Map<string, V>>
  maxEntries: number
  maxAgeMs?: number
  monotonic?: () => number
}

/**
 * Caches state whose changes must take effect on every core within a second. The bus event
 * `changed` drops the entry. An entry is used only while all wake-ups have arrived (`isCurrent`), and
 * for `maxAgeMs` after its load began.
 */
export function liveCacheOf<V>(core: Core, options: CacheOptions<V>) {
  const { loadMany, maxEntries, maxAgeMs = defaultMaxAgeMs, monotonic = () => performance.now() } = options
  const { isCurrent } = wakeupsOf(core)
  const load = createBatchLoader(loadMany)
  const entries = createLruCache<{ value: V; askedAt: number }>(maxEntries)
  /** Running loads by key. A change of the key removes them, and their results are not cached. */
  const loading = new Map<string, { loads: number }>()

  async function reload(key: string) {
    const mine = loading.get(key) ?? { loads: 0 }
    loading.set(key, mine)
    mine.loads += 1
    const askedAt = monotonic()
    try {
      const value = await load(key)
      if (value !== undefined && loading.get(key) === mine) entries.set(key, { value, askedAt })
      return value
    } finally {
      mine.loads -= 1
      if (mine.loads === 0 && loading.get(key) === mine) loading.delete(key)
    }
  }

  function invalidate(key: string) {
    loading.delete(key)
    entries.delete(key)
  }

  core.bus.on('changed', (ids) => ids.forEach(invalidate))
  core.bus.on('gap', () => {
    loading.clear()
    entries.clear()
  })

  return {
    /**
     * Returns the cached value, or loads it. A routine check keeps no core awake: see `isCurrent` of the
     * wake-ups. Errors: those of the load.
     */
    async get(key: string, isRoutine = false) {
      const known = entries.get(key)
      const isFresh = known !== undefined && monotonic() - known.askedAt <= maxAgeMs && isCurrent(isRoutine)
      return isFresh ? known.value : reload(key)
    },

    reload,
    /** Returns the cached value, even if it is outdated. */
    peek: (key: string) => entries.peek(key)?.value,
    invalidate,
  }
}

export type LiveCache<V> = ReturnType<typeof liveCacheOf<V>>
