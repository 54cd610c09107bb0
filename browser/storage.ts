/** The methods of the Web Storage interface that this package uses. */
export interface KeyValueStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** `session` survives a reload and ends with the tab. `memory` ends with the page. */
export type StorageMode = 'session' | 'memory'

/**
 * Returns a storage for this mode: `session` uses the tab's session storage, `memory` uses a map.
 * If session storage is blocked or full, values are kept in memory. The chat then works, but a
 * reload starts a new session. Creating the storage does not access session storage.
 */
export function storageFor(
  mode: StorageMode,
  browserStorage: () => KeyValueStorage = () => globalThis.sessionStorage,
): KeyValueStorage {
  const memory = new Map<string, string>()
  const attempt = <Result>(use: (storage: KeyValueStorage) => Result): Result | undefined => {
    try {
      return mode === 'memory' ? undefined : use(browserStorage())
    } catch {
      return undefined
    }
  }
  const removeItem = (key: string) => {
    memory.delete(key)
    attempt((storage) => storage.removeItem(key))
  }
  return {
    // Memory has only values that session storage rejected. They are newer than the stored ones.
    getItem: (key) => memory.get(key) ?? attempt((storage) => storage.getItem(key)) ?? null,
    setItem(key, value) {
      // If session storage rejects the new value, a reload must not read the old one.
      removeItem(key)
      attempt((storage) => [storage.setItem(key, value)]) || memory.set(key, value)
    },
    removeItem,
  }
}
