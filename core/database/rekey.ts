import { kidOf, type SecretBox } from '../keys/secret-box.ts'
import type { Collections } from './collections.ts'

interface SealedSecrets {
  /** Yields every sealed (encrypted) secret of the database. */
  all(): AsyncIterable<string>
  /**
   * Passes each secret to `reseal` and stores the result if it differs from the secret. Returns
   * the number of replaced secrets.
   */
  replace(reseal: (sealed: string) => string): Promise<number>
}

/**
 * Finds and replaces all sealed secrets. A concurrent rotation takes precedence: a secret is
 * replaced only if it has not changed since it was read.
 */
export function createSealedSecrets({
  installations,
  leadSubscriptions,
  keys,
}: Pick<Collections, 'installations' | 'leadSubscriptions' | 'keys'>): SealedSecrets {
  const lists = [
    { collection: installations, field: 'identitySecrets' },
    { collection: leadSubscriptions, field: 'secrets' },
    { collection: leadSubscriptions, field: 'headers' },
  ] as const

  async function replaceOne(sealed: string, set: (sealed: string) => Promise<{ modifiedCount: number }>, to: string) {
    return to === sealed ? 0 : (await set(to)).modifiedCount
  }

  return {
    async *all() {
      for await (const { sealed } of keys.find()) yield sealed
      for await (const { identitySecrets } of installations.find())
        for (const { sealed } of identitySecrets) yield sealed
      for await (const { secrets, headers = [] } of leadSubscriptions.find())
        for (const { sealed } of [...secrets, ...headers]) yield sealed
    },

    async replace(reseal) {
      let changed = 0
      for await (const { _id, sealed } of keys.find()) {
        const set = (to: string) => keys.updateOne({ _id, sealed }, { $set: { sealed: to } })
        changed += await replaceOne(sealed, set, reseal(sealed))
      }
      for (const { collection, field } of lists) {
        const found = (collection as Collections['installations']).find()
        for await (const document of found) {
          const secrets = (document as unknown as Record<string, { sealed: string }[]>)[field] ?? []
          for (const { sealed } of secrets) {
            const set = (to: string) =>
              (collection as Collections['installations']).updateOne(
                { _id: document._id, [`${field}.sealed`]: sealed },
                { $set: { [`${field}.$.sealed`]: to } },
              )
            changed += await replaceOne(sealed, set, reseal(sealed))
          }
        }
      }
      return changed
    },
  }
}

export interface Rekeyed {
  /** Number of secrets that were encrypted again with the current key. */
  changed: number
  /** Number of secrets that each key encrypts, by key id. */
  inUse: Record<string, number>
}

/**
 * Encrypts every secret of the database with the current key. Repeats until no secret uses another
 * key, because cores may rotate secrets at the same time. Throws if the key of a secret is missing.
 */
export async function rekey(secrets: SealedSecrets, secretBox: SecretBox, currentKid: string): Promise<Rekeyed> {
  const reseal = (sealed: string) => (kidOf(sealed) === currentKid ? sealed : secretBox.seal(secretBox.open(sealed)))
  let changed = 0
  for (let round = 1; round > 0; changed += round) round = await secrets.replace(reseal)
  const inUse: Record<string, number> = {}
  for await (const sealed of secrets.all()) inUse[kidOf(sealed)] = (inUse[kidOf(sealed)] ?? 0) + 1
  return { changed, inUse }
}
