import type { SessionContent } from '../vocabulary/types.ts'

/** Times in milliseconds of the browser's clock. */
export interface GrantTimes {
  renewAtMs: number
  expiresAtMs: number
  /** Time at which the session expires if it is not renewed. */
  endsAtMs: number
}

/**
 * Converts the service's times to the browser's clock, which may be hours off. The difference of
 * the clocks is computed from the grant's `iat` and `askedAtMs`, the time at which the grant was
 * first requested. The grant was issued after `askedAtMs`, so the computed times are never too
 * late. If the grant is unreadable, the clocks are assumed to agree.
 */
export function grantTimes(
  content: Pick<SessionContent, 'accessGrant' | 'renewAfter' | 'expiresAt' | 'renewableUntil'>,
  askedAtMs: number,
): GrantTimes {
  let shiftMs = 0
  try {
    const aheadMs = askedAtMs - JSON.parse(payloadOf(content.accessGrant)).iat * 1_000
    // `iat` is in whole seconds, so a difference below two seconds may come from rounding.
    if (Math.abs(aheadMs) >= 2_000) shiftMs = aheadMs
  } catch {}
  const { renewAfter, expiresAt, renewableUntil } = content
  return {
    renewAtMs: Date.parse(renewAfter) + shiftMs,
    expiresAtMs: Date.parse(expiresAt) + shiftMs,
    endsAtMs: Date.parse(renewableUntil) + shiftMs,
  }
}

/** Returns the decoded payload of a JWS as a binary string. Throws if the token is not a JWS. */
export function payloadOf(token: string): string {
  return atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))
}
