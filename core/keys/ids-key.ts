import { randomBytes } from 'node:crypto'
import type { KeyStore } from './key-store.ts'
import type { SecretBox } from './secret-box.ts'

/**
 * Returns the key with which the ids of browsers and verified visitors are hashed. Caches the key.
 * Errors: those of the store.
 */
export type IdsKey = () => Promise<Uint8Array>

const name = 'ids'

/**
 * Creates the function that returns the ids key. The ids of known visitors and their bans depend on
 * the ids key, so the ids key never changes. It is stored in the database, sealed with a secret
 * key. Before that secret key is removed, the ids key must be sealed with another secret key.
 */
export function createIdsKey(dependencies: { store: KeyStore; secretBox: SecretBox; now: () => number }): IdsKey {
  const { store, secretBox, now } = dependencies
  let known: Promise<Uint8Array> | undefined

  async function read(): Promise<Uint8Array> {
    const newKey = () => secretBox.seal(randomBytes(32).toString('base64url'))
    const kept = (await store.find(name)) ?? (await store.keep(name, newKey(), new Date(now())))
    return new Uint8Array(Buffer.from(secretBox.open(kept), 'base64url'))
  }

  return () => {
    known ??= read().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}
