/** The part of the Web Storage interface that the package uses. */
export interface KeyValueStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** `session` survives a reload in the same tab and ends with the tab; `memory` ends with the page. */
export type StorageMode = 'session' | 'memory'

export const createMemoryStorage = (): KeyValueStorage => storageFor('memory')

/**
 * The storage of a mode. If the browser refuses session storage (blocked or full), values are kept in memory: the chat
 * works, but a reload begins a new session. This call itself reads and writes nothing.
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
    // Memory holds only what session storage refused, so its value is newer.
    getItem: (key) => memory.get(key) ?? attempt((storage) => storage.getItem(key)) ?? null,
    setItem(key, value) {
      // An older stored value must not return after a reload.
      removeItem(key)
      attempt((storage) => [storage.setItem(key, value)]) || memory.set(key, value)
    },
    removeItem,
  }
}
