import { CompactSign } from 'jose'
import { createKeyring, parseSecretKeys } from '../../core/keys/keyring.ts'
import { dataFolderSecrets } from '../../serve/data-folder.ts'

export interface GrantChange {
  /** Claims that replace those of the grant. The value undefined removes a claim. */
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  /** Signing key. Default: the service's own key. */
  key?: Uint8Array
}

/**
 * Creates a function that changes a grant and signs it with the stack's own key. The signature
 * stays valid, so only the change can be the reason for a rejection.
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
