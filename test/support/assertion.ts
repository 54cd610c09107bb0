import { createHmac, randomUUID } from 'node:crypto'

export interface AssertionChange {
  /** Claims that replace or extend the valid ones. A claim with the value undefined is omitted. */
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  /**
   * Hash function of the HMAC signature. `none` makes the signature empty. The `alg` of the header
   * does not follow this value; set it with `header`.
   */
  hash?: 'sha256' | 'sha512' | 'none'
}

/** Signs an identity assertion without a library, so that tests can make any part of it invalid. */
export function signAssertion(
  { siteKey, kid, secret, now = Date.now() }: { siteKey: string; kid: string; secret: string; now?: number },
  { claims, header, hash = 'sha256' }: AssertionChange = {},
): string {
  const iat = Math.floor(now / 1000)
  const typ = 'service-visitor-identity+jwt'
  const input = [
    { alg: 'HS256', typ, kid, ...header },
    { aud: siteKey, sub: 'customer-1', iat, exp: iat + 120, jti: randomUUID(), ...claims },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = hash === 'none' ? '' : createHmac(hash, secret).update(input).digest('base64url')
  return `${input}.${signature}`
}
