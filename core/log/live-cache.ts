import { createBatchLoader } from '../concurrency/batch-loader.ts'

export interface LiveCache<V> {
  /** The value, at most one second old; undefined when there is none. Errors: those of the load. */
  get(key: string): Promise<V | undefined>
  /** Reads the value from the store. */
  reload(key: string): Promise<V | undefined>
  /** The cached value, however old. */
  peek(key: string): V | undefined
  /** Drops a value that changed. */
  invalidate(key: string): void
  clear(): void
}

/** Maximum delay of a change whose wake-up was lost. */
const defaultMaxAgeMs = 5_000

/**
 * Caches state whose changes must take effect on every core within a second. A wake-up for a change
 * drops the entry. An entry is used only while `isCurrent` confirms that all wake-ups have arrived.
 * It is never used longer than `maxAgeMs` after its load began.
 */
export function createLiveCache<V>(options: {
  loadMany: (keys: string[]) => Promise<Map<string, V>>
  isCurrent: () => boolean
  maxEntries: number
  maxAgeMs?: number
  /** A clock in milliseconds that never goes back. */
  monotonic?: () => number
}): LiveCache<V> {
  const { isCurrent, maxEntries, maxAgeMs = defaultMaxAgeMs, monotonic = () => performance.now() } = options
  const load = createBatchLoader(options.loadMany)
  const entries = new Map<string, { value: V; askedAt: number }>()
  /** Number of changes. A load that began before a change is not cached after it. */
  let changes = 0

  async function reload(key: string) {
    const began = changes
    const askedAt = monotonic()
    const value = await load(key)
    if (value !== undefined && began === changes) {
      entries.delete(key)
      entries.set(key, { value, askedAt })
      if (entries.size > maxEntries) for (const oldest of entries.keys()) return drop(oldest, value)
    }
    return value
  }

  function drop(key: string, value: V) {
    entries.delete(key)
    return value
  }

  return {
    async get(key) {
      const known = entries.get(key)
      const isFresh = known !== undefined && monotonic() - known.askedAt <= maxAgeMs && isCurrent()
      return isFresh ? known.value : reload(key)
    },
    reload,
    peek: (key) => entries.get(key)?.value,
    invalidate(key) {
      changes += 1
      entries.delete(key)
    },
    clear() {
      changes += 1
      entries.clear()
    },
  }
}
