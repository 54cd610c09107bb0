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

/**
 * Remembers state that must take effect everywhere within a second: an entry counts only while `isCurrent` says that
 * every change would have been heard of, and is dropped when one is.
 */
export function createLiveCache<V>(options: {
  loadMany: (keys: string[]) => Promise<Map<string, V>>
  isCurrent: () => boolean
  maxEntries: number
}): LiveCache<V> {
  const load = createBatchLoader(options.loadMany)
  const entries = new Map<string, V>()
  /** Grows with each change, so that a load that began before one is not remembered after it. */
  let changes = 0

  async function reload(key: string) {
    const began = changes
    const value = await load(key)
    if (value !== undefined && began === changes) {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > options.maxEntries) for (const oldest of entries.keys()) return drop(oldest, value)
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
      return known !== undefined && options.isCurrent() ? known : reload(key)
    },
    reload,
    peek: (key) => entries.get(key),
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
