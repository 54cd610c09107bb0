import { type Core, dateOf, perCore } from './core.ts'
import { insertOnce } from './mongodb/insert-each.ts'

/** A permanent key, sealed with a secret key of the settings. */
export interface KeyDocument {
  _id: string
  sealed?: string
  createdAt: Date
  /** Id of a secret key of the settings. A document with this field only checks that key. */
  kid?: string
  check?: string
}

/** Returns a function for a key that never changes. The first core makes it and stores it sealed. */
export function storedKey(name: string, make: () => string | Promise<string>): (core: Core) => Promise<string> {
  async function readSealed(core: Core): Promise<string> {
    const { keys } = core.db
    const known = (await keys.findOne({ _id: name }))?.sealed
    if (known !== undefined) return known
    const sealed = core.secretBox.seal(await make())
    const isFirst = await insertOnce(keys, { _id: name, sealed, createdAt: dateOf(core) })
    return isFirst ? sealed : readSealed(core)
  }

  const cachedOf = perCore((_): { key?: Promise<string> | undefined } => ({}))
  return (core) => {
    const cached = cachedOf(core)
    cached.key ??= readSealed(core)
      .then((sealed) => core.secretBox.open(sealed))
      .catch((error: unknown) => {
        cached.key = undefined
        throw error
      })
    return cached.key
  }
}
