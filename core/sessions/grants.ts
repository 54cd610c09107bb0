import { CompactSign, compactVerify, errors } from 'jose'
import { createLruCache } from '../../platform/lru-cache.ts'
import { perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { equalInConstantTime, keyedHash } from '../keys/keyring.ts'

/** Claims of an access grant (contract, section 2). Times are whole seconds since 1970. */
interface GrantClaims {
  sid: string
  aud: string
  org: string
  iat: number
  exp: number
}

const audience = 'service.widget.public-api'
const type = 'service-access-grant+jwt'
const algorithm = 'HS256'
const maxGrantLength = 2048
const maxVerified = 50_000

/** Access grants and renewal tokens. Needs only the secret keys and no database. */
export const grantsOf = perCore(({ keyring }) => {
  /** Claims of grants verified earlier. A visitor sends the same grant until it expires. */
  const verified = createLruCache<GrantClaims>(maxVerified)

  async function readGrant(grant: string) {
    if (grant.length > maxGrantLength) throw new ServiceError('GrantInvalid')
    try {
      const { payload, protectedHeader } = await compactVerify(
        grant,
        ({ kid = '' }) => {
          const found = keyring.find('access-grant', kid)
          if (!found) throw new errors.JWKSNoMatchingKey()
          return found.key
        },
        { algorithms: [algorithm] },
      )
      const claims: unknown = JSON.parse(new TextDecoder().decode(payload))
      if (protectedHeader.typ === type && isGrantClaims(claims)) return claims
    } catch (error) {
      if (!(error instanceof errors.JOSEError || error instanceof SyntaxError)) throw error
    }
    throw new ServiceError('GrantInvalid')
  }

  const renewalToken = (sessionId: string, generation: number, { kid, key } = keyring.current('renewal-token')) =>
    `${kid}.${keyedHash(key, sessionId, String(generation)).toString('base64url')}`

  return {
    /** Returns a compact JWS. The same claims give the same grant. */
    sign(claims: Omit<GrantClaims, 'aud'>) {
      const { kid, key } = keyring.current('access-grant')
      return new CompactSign(new TextEncoder().encode(JSON.stringify({ ...claims, aud: audience })))
        .setProtectedHeader({ alg: algorithm, typ: type, kid })
        .sign(key)
    },

    /** Returns the claims of a signed grant, even if it has expired. Errors: `GrantInvalid`. */
    async verify(grant: string) {
      const claims = verified.get(grant) ?? (await readGrant(grant))
      verified.set(grant, claims)
      return claims
    },

    /** Derives a renewal token of 256 bits in base64url. The token is never stored. */
    renewalToken: (sessionId: string, generation: number) => renewalToken(sessionId, generation),
    isRenewalToken: (token: string, sessionId: string, generation: number) =>
      keyring.all('renewal-token').some((key) => equalInConstantTime(token, renewalToken(sessionId, generation, key))),
  }
})

function isGrantClaims(value: unknown): value is GrantClaims {
  const { sid, aud, org, iat, exp } = value as Partial<GrantClaims>
  const areTexts = typeof sid === 'string' && typeof org === 'string'
  return areTexts && Number.isInteger(iat) && Number.isInteger(exp) && aud === audience
}
