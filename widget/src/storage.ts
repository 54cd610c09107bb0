/** The part of the Web Storage interface that the package uses. */
export interface KeyValueStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** `session` survives a reload in the same tab and ends with the tab; `memory` ends with the page. */
export type StorageMode = 'session' | 'memory'

export function createMemoryStorage(): KeyValueStorage {
  const items = new Map<string, string>()
  return {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  }
}

/**
 * The storage of a mode. Where the browser refuses session storage (blocked by the visitor, or full), memory takes its
 * place, so the chat works and only a reload starts anew. Nothing is read or written here.
 */
export function storageFor(
  mode: StorageMode,
  browserStorage: () => KeyValueStorage = () => globalThis.sessionStorage,
): KeyValueStorage {
  const memory = createMemoryStorage()
  if (mode === 'memory') return memory
  const attempt = <Result>(use: (storage: KeyValueStorage) => Result): Result | undefined => {
    try {
      return use(browserStorage())
    } catch {
      return undefined
    }
  }
  const forget = (key: string) => attempt((storage) => storage.removeItem(key))
  return {
    // What memory has is newer: it holds only what the browser refused to take.
    getItem: (key) => memory.getItem(key) ?? attempt((storage) => storage.getItem(key)) ?? null,
    setItem(key, value) {
      memory.removeItem(key)
      if (attempt((storage) => [storage.setItem(key, value)])) return
      // The older value must not come back after a reload as if it were true.
      forget(key)
      memory.setItem(key, value)
    },
    removeItem(key) {
      memory.removeItem(key)
      forget(key)
    },
  }
}
