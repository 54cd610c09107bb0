import type { Collections } from '../database/database.ts'

export interface SealedSecrets {
  /** Every sealed secret of the database. */
  all(): AsyncIterable<string>
  /**
   * Replaces each secret with the result of `reseal` unless it is equal. Returns the number of
   * changes.
   */
  replace(reseal: (sealed: string) => string): Promise<number>
}

/**
 * Finds and replaces all sealed secrets. A concurrent rotation takes precedence: a secret is
 * replaced only if it is unchanged since it was read.
 */
export function createSealedSecrets({
  installations,
  leadSubscriptions,
  keys,
}: Pick<Collections, 'installations' | 'leadSubscriptions' | 'keys'>): SealedSecrets {
  const lists = [
    { collection: installations, field: 'identitySecrets' },
    { collection: leadSubscriptions, field: 'secrets' },
  ] as const

  async function replaceOne(sealed: string, set: (sealed: string) => Promise<{ modifiedCount: number }>, to: string) {
    return to === sealed ? 0 : (await set(to)).modifiedCount
  }

  return {
    async *all() {
      for await (const { sealed } of keys.find()) yield sealed
      for await (const { identitySecrets } of installations.find())
        for (const { sealed } of identitySecrets) yield sealed
      for await (const { secrets } of leadSubscriptions.find()) for (const { sealed } of secrets) yield sealed
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
