import type { SessionContent } from './types.ts'

/** When to renew and when the grant is over, in milliseconds of the browser's own clock. */
export interface GrantTimes {
  renewAtMs: number
  expiresAtMs: number
}

/**
 * Translates the service's times to the browser's clock, which can be hours off: the grant says when it was issued, and
 * `askedAtMs` is when the browser first asked for it, so the difference is never more than the real one. A grant that cannot
 * be read is taken as issued by a clock that agrees.
 */
export function grantTimes(
  content: Pick<SessionContent, 'accessGrant' | 'renewAfter' | 'expiresAt'>,
  askedAtMs: number,
): GrantTimes {
  const issuedAtMs = issuedAt(content.accessGrant)
  const aheadMs = issuedAtMs === undefined ? 0 : askedAtMs - issuedAtMs
  // `iat` counts whole seconds, and a clock that agrees must not be made to differ by them.
  const shiftMs = Math.abs(aheadMs) < 2_000 ? 0 : aheadMs
  return { renewAtMs: Date.parse(content.renewAfter) + shiftMs, expiresAtMs: Date.parse(content.expiresAt) + shiftMs }
}

function issuedAt(grant: string): number | undefined {
  try {
    const { iat } = JSON.parse(payloadOf(grant))
    return typeof iat === 'number' ? iat * 1000 : undefined
  } catch {
    return undefined
  }
}

/** The payload of a JWS, a character for each of its bytes. Throws where there is none. */
export function payloadOf(token: string): string {
  return atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))
}
