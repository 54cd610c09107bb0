import { createBatchLoader } from '../concurrency/batch-loader.ts'

export interface LiveCache<V> {
  /** The value as it was at most a second ago; undefined when there is none. Errors: those of the load. */
  get(key: string): Promise<V | undefined>
  /** The value as the store has it now. */
  reload(key: string): Promise<V | undefined>
  /** The value that is remembered, however old. */
  peek(key: string): V | undefined
  /** Somebody changed it. */
  invalidate(key: string): void
  clear(): void
}

/** A change whose hint was lost with the process that made it takes effect after this long, in milliseconds. */
const defaultMaxAgeMs = 5_000

/**
 * Caches state whose changes must take effect everywhere within a second. An entry is dropped when a change of it is heard
 * of. It counts only while `isCurrent` says that every change is heard of, and never longer than `maxAgeMs` after the
 * store was asked for it.
 */
export function createLiveCache<V>(options: {
  loadMany: (keys: string[]) => Promise<Map<string, V>>
  isCurrent: () => boolean
  maxEntries: number
  maxAgeMs?: number
  /** Milliseconds of a clock that never goes back. */
  monotonic?: () => number
}): LiveCache<V> {
  const { isCurrent, maxEntries, maxAgeMs = defaultMaxAgeMs, monotonic = () => performance.now() } = options
  const load = createBatchLoader(options.loadMany)
  const entries = new Map<string, { value: V; askedAt: number }>()
  /** Counts the changes: a load that began before one is not cached after it. */
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
