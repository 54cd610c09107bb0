import type { SealedSecrets } from './sealed-secret-store.ts'
import type { SecretBox } from './secret-box.ts'
import { kidOf } from './secret-box.ts'

export interface Rekeyed {
  /** Number of secrets sealed again. */
  changed: number
  /** Number of secrets by the id of their key. */
  inUse: Record<string, number>
}

/**
 * Seals every secret of the database with the current key. It can run beside cores that rotate
 * secrets, and repeats until no secret uses another key. Throws if the key of a secret is missing.
 */
export async function rekey(secrets: SealedSecrets, secretBox: SecretBox, currentKid: string): Promise<Rekeyed> {
  const reseal = (sealed: string) => (kidOf(sealed) === currentKid ? sealed : secretBox.seal(secretBox.open(sealed)))
  let changed = 0
  for (let round = 1; round > 0; changed += round) round = await secrets.replace(reseal)
  const inUse: Record<string, number> = {}
  for await (const sealed of secrets.all()) inUse[kidOf(sealed)] = (inUse[kidOf(sealed)] ?? 0) + 1
  return { changed, inUse }
}
