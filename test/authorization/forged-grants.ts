import { CompactSign } from 'jose'
import { createKeyring } from '../../core/keys/keyring.ts'
import { dataFolderSecrets, parseSecretKeys } from '../../core/secrets.ts'

export interface GrantChange {
  /** Undefined removes a claim. */
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  /** Default: the service's own key. */
  key?: Uint8Array
}

/**
 * Signs changed grants with the stack's own key, so that only the changed part is invalid, not the
 * signature.
 */
export async function createGrantForger(dataDir: string) {
  const { secretKeys } = await dataFolderSecrets(dataDir)
  const { kid, key: own } = createKeyring(parseSecretKeys(secretKeys)).current('access-grant')

  return (grant: string, { claims = {}, header = {}, key = own }: GrantChange = {}): Promise<string> => {
    const given = JSON.parse(Buffer.from(grant.split('.')[1]!, 'base64url').toString())
    return new CompactSign(new TextEncoder().encode(JSON.stringify({ ...given, ...claims })))
      .setProtectedHeader({ alg: 'HS256', typ: 'service-access-grant+jwt', kid, ...header })
      .sign(key)
  }
}
