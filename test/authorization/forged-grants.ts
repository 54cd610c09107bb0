import { CompactSign } from 'jose'
import { createKeyring } from '../../core/keys/keyring.ts'
import { dataFolderSecrets, parseSecretKeys } from '../../core/secrets.ts'

export interface GrantChange {
  /** Undefined takes a claim away. */
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  /** Left out: the service's own key. */
  key?: Uint8Array
}

/**
 * Grants signed with the very key of the stack whose data folder this is: what is wrong with them is what the test changes,
 * and never the signature.
 */
export async function grantForger(dataDir: string) {
  const { secretKeys } = await dataFolderSecrets(dataDir)
  const { kid, key: own } = createKeyring(parseSecretKeys(secretKeys)).current('access-grant')

  return (grant: string, { claims = {}, header = {}, key = own }: GrantChange = {}): Promise<string> => {
    const given = JSON.parse(Buffer.from(grant.split('.')[1]!, 'base64url').toString())
    return new CompactSign(new TextEncoder().encode(JSON.stringify({ ...given, ...claims })))
      .setProtectedHeader({ alg: 'HS256', typ: 'service-access-grant+jwt', kid, ...header })
      .sign(key)
  }
}
