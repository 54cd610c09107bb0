import type { SealedSecrets } from './sealed-secret-store.ts'
import type { SecretBox } from './secret-box.ts'
import { kidOf } from './secret-box.ts'

export interface Rekeyed {
  /** Secrets that were sealed anew. */
  changed: number
  /** Key ids that secrets are sealed with now, with how many. */
  inUse: Record<string, number>
}

/**
 * Seals every secret of the database with the current key, beside running cores and their rotations; again until none is
 * left, so that the other keys are needed for none of them. Errors: throws where a secret's key is gone.
 */
export async function rekey(secrets: SealedSecrets, secretBox: SecretBox, currentKid: string): Promise<Rekeyed> {
  const reseal = (sealed: string) => (kidOf(sealed) === currentKid ? sealed : secretBox.seal(secretBox.open(sealed)))
  let changed = 0
  for (let round = 1; round > 0; changed += round) round = await secrets.replace(reseal)
  const inUse: Record<string, number> = {}
  for await (const sealed of secrets.all()) inUse[kidOf(sealed)] = (inUse[kidOf(sealed)] ?? 0) + 1
  return { changed, inUse }
}
