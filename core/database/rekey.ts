import type { Collection, Document } from 'mongodb'
import { kidOf, type SecretBox } from '../keys/secret-box.ts'
import type { Collections } from './collections.ts'

export type SecretCollections = Pick<
  Collections,
  'installations' | 'leadSubscriptions' | 'keys' | 'consoleSessions' | 'signInAttempts'
>

/**
 * Yields all sealed secrets, or with `limit` at most so many of each kind. `set` replaces a secret, unless a
 * concurrent rotation has changed it.
 */
export async function* sealedSecrets(collections: SecretCollections, limit = 0) {
  const { keys, installations, leadSubscriptions, consoleSessions, signInAttempts } = collections
  /** Every field that contains a sealed text, or a list of objects with one in `sealed`. */
  const places = [
    { documents: keys, field: 'sealed' },
    { documents: installations, field: 'identitySecrets' },
    { documents: leadSubscriptions, field: 'secrets' },
    { documents: leadSubscriptions, field: 'headers' },
    { documents: leadSubscriptions, field: 'destination.sealed' },
    { documents: consoleSessions, field: 'provider.sealed' },
    { documents: consoleSessions, field: 'push.sealed' },
    { documents: signInAttempts, field: 'sealed' },
  ] as unknown as { documents: Collection<{ _id: string } & Document>; field: string }[]
  for (const { documents, field } of places) {
    const having = documents.find({ [field]: { $exists: true } }, { projection: { [field]: 1 }, limit })
    for await (const document of having) {
      const value = field.split('.').reduce((each, name) => each?.[name], document as Document)
      const isList = Array.isArray(value)
      const [path, target] = isList ? [`${field}.sealed`, `${field}.$.sealed`] : [field, field]
      const texts: string[] = isList ? value.map(({ sealed }) => sealed) : [value]
      for (const sealed of texts)
        yield {
          sealed,
          set: (to: string) => documents.updateOne({ _id: document._id, [path]: sealed }, { $set: { [target]: to } }),
        }
    }
  }
}

/**
 * Seals every secret with the current key. Repeats until no secret uses another key, because cores may rotate
 * secrets meanwhile. Throws if a secret cannot be opened.
 */
export async function rekey(collections: SecretCollections, secretBox: SecretBox, currentKid: string) {
  function reseal(sealed: string) {
    try {
      const plain = secretBox.open(sealed)
      return kidOf(sealed) === currentKid ? sealed : secretBox.seal(plain)
    } catch {
      throw new Error(
        `a secret cannot be opened: SECRET_KEYS lacks the key ${JSON.stringify(kidOf(sealed))}, or has another key under this id; restore it from the backup of core.env`,
      )
    }
  }
  let changed = 0
  for (let before = -1; changed > before; ) {
    before = changed
    for await (const { sealed, set } of sealedSecrets(collections)) {
      const to = reseal(sealed)
      if (to !== sealed) changed += (await set(to)).modifiedCount
    }
  }
  const inUse: Record<string, number> = {}
  for await (const { sealed } of sealedSecrets(collections)) inUse[kidOf(sealed)] = (inUse[kidOf(sealed)] ?? 0) + 1
  return { changed, inUse }
}
