import { SettingError } from '../../platform/settings/settings.ts'
import { createKeyring, type SecretKey } from '../keys/keyring.ts'
import { createSecretBox, kidOf } from '../keys/secret-box.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import type { Collections } from './collections.ts'
import { type SecretCollections, sealedSecrets } from './rekey.ts'

/**
 * Compares `SECRET_KEYS` with the keys that the database was used with, and stores a check value that is sealed
 * with the current key. Throws `SettingError` if a secret or the newest check value cannot be opened, because
 * cores with different keys would refuse each other's grants and tokens.
 */
export async function requireMatchingKeys(
  collections: SecretCollections & Pick<Collections, 'keys'>,
  secretKeys: [SecretKey, ...SecretKey[]],
  now: () => number = Date.now,
) {
  const { keys } = collections
  const box = createSecretBox(createKeyring(secretKeys))
  const kids = secretKeys.map(({ kid }) => kid)

  function requireOpen(sealed: string) {
    const kid = kidOf(sealed)
    if (!kids.includes(kid))
      throw new SettingError(
        `SECRET_KEYS lacks the key ${JSON.stringify(kid)}, which seals secrets of this database; put it back behind the current key, from the backup of core.env (SECRET_KEYS=new,old)`,
      )
    try {
      box.open(sealed)
    } catch {
      throw new SettingError(
        `SECRET_KEYS has another key under the id ${JSON.stringify(kid)} than the one that this database was used with; restore core.env from its backup, or give the new key an id of its own and put it in front`,
      )
    }
  }

  const checks = await keys
    .find({ check: { $exists: true } })
    .sort({ createdAt: 1 })
    .toArray()
  for (const { kid = '', check = '' } of checks) if (kids.includes(kid)) requireOpen(check)
  for await (const { sealed } of sealedSecrets(collections, 1)) requireOpen(sealed)
  const newest = checks.at(-1)
  if (newest?.kid !== undefined && !kids.includes(newest.kid))
    throw new SettingError(
      `SECRET_KEYS lacks the key ${JSON.stringify(newest.kid)}, which is in use since ${newest.createdAt.toISOString()}; add it, or run \`npm run migrate -- --rekey\` if it was withdrawn`,
    )
  const [{ kid }] = secretKeys
  if (checks.some((check) => check.kid === kid)) return
  const check = { _id: `check ${kid}`, kid, check: box.seal('service'), createdAt: new Date(now()) }
  if (!(await insertOnce(keys, check))) requireOpen((await keys.findOne({ _id: check._id }))?.check ?? '')
}

export async function forgetWithdrawnKeys(keys: Collections['keys'], secretKeys: SecretKey[]) {
  await keys.deleteMany({ check: { $exists: true }, kid: { $nin: secretKeys.map(({ kid }) => kid) } })
}
