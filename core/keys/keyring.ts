import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { SettingError } from '../../platform/settings/settings.ts'
import { type IdPrefix, plannedId } from '../ids.ts'

/** Each purpose has its own keys, derived from the secret keys of the settings. */
type KeyPurpose = 'access-grant' | 'renewal-token' | 'service-token' | 'planned-id' | 'encryption'

export type Keyring = ReturnType<typeof createKeyring>

export interface SecretKey {
  kid: string
  /** The secret of at least 32 bytes. */
  secret: Uint8Array
}

/**
 * Time in milliseconds for which a silent core counts as live. A resting core announces its keys
 * every 25 s. A silent core may only be slow, or it may start again with the same keys.
 */
const liveForMs = 45_000

/**
 * Derives the keys of every purpose (HKDF-SHA256, RFC 5869), each of 32 bytes. One of the secret keys is
 * the current one. The others only verify and decrypt.
 */
export function createKeyring(
  secretKeys: [SecretKey, ...SecretKey[]],
  monotonic: () => number = () => performance.now(),
) {
  const announced = new Map<string, { kids: readonly string[]; at: number }>()
  let current = 0
  const derived = new Map<KeyPurpose, { kid: string; key: Uint8Array }[]>()

  /** Returns all accepted keys, in the order of the settings. */
  function keysFor(purpose: KeyPurpose) {
    const keys =
      derived.get(purpose) ??
      secretKeys.map(({ kid, secret }) => ({
        kid,
        key: new Uint8Array(hkdfSync('sha256', secret, '', `service/${purpose}`, 32)),
      }))
    derived.set(purpose, keys)
    return keys
  }

  return {
    /** Returns the key with which new data is signed or encrypted. */
    current: (purpose: KeyPurpose) => keysFor(purpose)[current]!,
    find: (purpose: KeyPurpose, kid: string) => keysFor(purpose).find((key) => key.kid === kid),
    all: keysFor,
    kids: secretKeys.map(({ kid }) => kid),
    /** Must be called when another core has announced the ids of its keys. */
    announcedBy: (core: string, kids: readonly string[]) => void announced.set(core, { kids, at: monotonic() }),
    /**
     * Makes the first key that every live core has announced the current one. Before the first call,
     * and if the cores have no key in common, the first key is the current one.
     */
    choose() {
      for (const [core, { at }] of announced) if (monotonic() - at > liveForMs) announced.delete(core)
      const others = [...announced.values()]
      const index = secretKeys.findIndex(({ kid }) => others.every(({ kids }) => kids.includes(kid)))
      current = Math.max(0, index)
    },
  }
}

/** Parses `k2:…,k1:…`. The message of a `SettingError` contains the id of a bad key, never the key. */
export function parseSecretKeys(text: string): [SecretKey, ...SecretKey[]] {
  const keys = text.split(',').map((entry) => {
    const [kid = '', encoded = ''] = entry.split(':')
    const secret = new Uint8Array(Buffer.from(encoded, 'base64'))
    if (secret.length < 32)
      throw new SettingError(`SECRET_KEYS: the key ${JSON.stringify(kid)} has fewer than 32 bytes`)
    return { kid, secret }
  })
  const twice = keys.find(({ kid }, index) => keys.findIndex((key) => key.kid === kid) < index)
  if (twice)
    throw new SettingError(
      `SECRET_KEYS has two keys with the id ${JSON.stringify(twice.kid)}; give each key its own id`,
    )
  return keys as [SecretKey, ...SecretKey[]]
}

/** Returns the HMAC-SHA256 of the parts. Different lists of parts are different input of the hash. */
export function keyedHash(key: Uint8Array, ...parts: string[]): Buffer {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest()
}

/** Returns the first 128 bits of `keyedHash` as 32 hexadecimal digits. */
export const shortHash = (key: Uint8Array, ...parts: string[]): string =>
  keyedHash(key, ...parts)
    .toString('hex')
    .slice(0, 32)

/** Compares two strings in a time that does not depend on where they differ. */
export function equalInConstantTime(left: string, right: string): boolean {
  const a = createHmac('sha256', 'compare').update(left).digest()
  const b = createHmac('sha256', 'compare').update(right).digest()
  return timingSafeEqual(a, b)
}

export type PlannedIds = ReturnType<typeof createPlannedIds>

/** Returns a function that plans the id of what an operation creates: the same in every run. */
export const createPlannedIds =
  (keyring: Keyring) =>
  (prefix: IdPrefix, ...operation: string[]) =>
    plannedId(prefix, keyedHash(keyring.current('planned-id').key, prefix, ...operation))
