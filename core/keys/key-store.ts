import type { Collection } from 'mongodb'
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

export interface KeyStore {
  find(name: string): Promise<string | undefined>
  /** Stores a key, unless a key with this name exists. Returns the stored key. */
  keep(name: string, sealed: string, at: Date): Promise<string>
}

export function createKeyStore({ keys }: { keys: Collection<KeyDocument> }): KeyStore {
  const find = async (name: string) => (await keys.findOne({ _id: name }))?.sealed

  return {
    find,

    async keep(name, sealed, at) {
      if (await insertOnce(keys, { _id: name, sealed, createdAt: at })) return sealed
      return (await find(name)) ?? this.keep(name, sealed, at)
    },
  }
}
