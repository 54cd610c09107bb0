import type { KeyStore } from './key-store.ts'
import type { Keyring } from './keyring.ts'
import type { SecretBox } from './secret-box.ts'

/** The key by which browsers and subjects are known, once it has been read. Errors: those of the store. */
export type IdsKey = () => Promise<Uint8Array>

const name = 'ids'

/**
 * Whom we know again, and whose ban stands, hangs on this key, so it lasts as long as the database: it is kept there,
 * sealed, and any of the secret keys can be taken away once it was sealed anew. In a database from before, it is what
 * was used there: the oldest of the secret keys gives it.
 */
export function createIdsKey(dependencies: {
  store: KeyStore
  secretBox: SecretBox
  keyring: Keyring
  now: () => number
}): IdsKey {
  const { store, secretBox, keyring, now } = dependencies
  let known: Promise<Uint8Array> | undefined

  async function read(): Promise<Uint8Array> {
    const kept = (await store.find(name)) ?? (await store.keep(name, secretBox.seal(ofOldest()), new Date(now())))
    return new Uint8Array(Buffer.from(secretBox.open(kept), 'base64url'))
  }

  function ofOldest(): string {
    return Buffer.from(keyring.all('visitor-id').at(-1)!.key).toString('base64url')
  }

  return () => {
    known ??= read().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}
