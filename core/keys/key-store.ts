import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'

/** A permanent key of the database, sealed with the secret keys of the settings. */
export interface KeyDocument {
  _id: string
  sealed: string
  createdAt: Date
}

export interface KeyStore {
  find(name: string): Promise<string | undefined>
  /** Stores a key unless the name exists. Returns the stored one. */
  keep(name: string, sealed: string, at: Date): Promise<string>
}

export function createKeyStore({ keys }: { keys: Collection<KeyDocument> }): KeyStore {
  const find = async (name: string) => (await keys.findOne({ _id: name }))?.sealed

  return {
    find,

    async keep(name, sealed, at) {
      try {
        await keys.insertOne({ _id: name, sealed, createdAt: at })
        return sealed
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
        return (await find(name)) ?? this.keep(name, sealed, at)
      }
    },
  }
}
