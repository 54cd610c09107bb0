import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/**
 * Purpose of a key. Each purpose has its own keys, derived from the secret keys of the settings.
 */
export type KeyPurpose = 'access-grant' | 'renewal-token' | 'service-token' | 'visitor-id' | 'planned-id' | 'encryption'

export interface DerivedKey {
  kid: string
  /** 32 bytes. */
  key: Uint8Array
}

export interface Keyring {
  /** The key for signing and encryption. */
  current(purpose: KeyPurpose): DerivedKey
  /**
   * An accepted key, the current one if several have the same id; undefined for an unknown key id.
   */
  find(purpose: KeyPurpose, kid: string): DerivedKey | undefined
  /** Every accepted key, the current one first. */
  all(purpose: KeyPurpose): DerivedKey[]
}

export interface SecretKey {
  kid: string
  /** At least 32 bytes. */
  secret: Uint8Array
}

/**
 * Derives the keys of every purpose (HKDF-SHA256, RFC 5869). The first secret key is the current
 * one; the others are only accepted.
 */
export function createKeyring(secretKeys: [SecretKey, ...SecretKey[]]): Keyring {
  const derived = new Map<KeyPurpose, [DerivedKey, ...DerivedKey[]]>()

  function keysFor(purpose: KeyPurpose) {
    let keys = derived.get(purpose)
    if (!keys) {
      const derive = ({ kid, secret }: SecretKey) => ({
        kid,
        key: new Uint8Array(hkdfSync('sha256', secret, '', `service/${purpose}`, 32)),
      })
      const [first, ...rest] = secretKeys
      keys = [derive(first), ...rest.map(derive)]
      derived.set(purpose, keys)
    }
    return keys
  }

  return {
    current: (purpose) => keysFor(purpose)[0],
    find: (purpose, kid) => keysFor(purpose).find((key) => key.kid === kid),
    all: keysFor,
  }
}

/** HMAC-SHA256 over the parts. Different lists of parts have different inputs. */
export function keyedHash(key: Uint8Array, ...parts: string[]): Buffer {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest()
}

/** Compares two strings in a time that does not depend on where they differ. */
export function equalInConstantTime(left: string, right: string): boolean {
  const a = createHmac('sha256', 'compare').update(left).digest()
  const b = createHmac('sha256', 'compare').update(right).digest()
  return timingSafeEqual(a, b)
}
