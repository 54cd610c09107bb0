import { randomBytes } from 'node:crypto'
import { type Core, perCore } from '../core.ts'
import { insertOnce } from '../mongodb/insert-each.ts'

/** A permanent key that is stored in the database, sealed with a secret key of the settings. */
export interface KeyDocument {
  _id: string
  sealed?: string
  createdAt: Date
  /** Id of a secret key of the settings, in a document that only checks this key. */
  kid?: string
  /** A known text, sealed with the key `kid`. */
  check?: string
}

const name = 'ids'

async function readSealed(core: Core): Promise<string> {
  const { keys } = core.db
  const find = async () => (await keys.findOne({ _id: name }))?.sealed
  const known = await find()
  if (known !== undefined) return known
  const sealed = core.secretBox.seal(randomBytes(32).toString('base64url'))
  if (await insertOnce(keys, { _id: name, sealed, createdAt: new Date(core.now()) })) return sealed
  return (await find()) ?? readSealed(core)
}

const cachedOf = perCore((_): { key?: Promise<Uint8Array> | undefined } => ({}))

/**
 * Returns the key with which the ids of browsers and verified visitors are hashed. The ids of known
 * visitors and their bans depend on it, so it never changes. It is stored in the database, sealed
 * with a secret key. Before that secret key is removed, it must be sealed with another one.
 */
export function idsKey(core: Core): Promise<Uint8Array> {
  const cached = cachedOf(core)
  cached.key ??= readSealed(core)
    .then((sealed) => new Uint8Array(Buffer.from(core.secretBox.open(sealed), 'base64url')))
    .catch((error: unknown) => {
      cached.key = undefined
      throw error
    })
  return cached.key
}
