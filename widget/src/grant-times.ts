import type { SessionContent } from './types.ts'

/** When to renew and when the grant is over, in milliseconds of the browser's own clock. */
export interface GrantTimes {
  renewAtMs: number
  expiresAtMs: number
}

/**
 * Converts the service's times to the browser's clock, which can be hours off. The grant's `iat` is compared with
 * `askedAtMs`, the time of the first request, so the computed difference is never larger than the real one. If the grant
 * cannot be read, the clocks are assumed to agree.
 */
export function grantTimes(
  content: Pick<SessionContent, 'accessGrant' | 'renewAfter' | 'expiresAt'>,
  askedAtMs: number,
): GrantTimes {
  let shiftMs = 0
  try {
    const aheadMs = askedAtMs - JSON.parse(payloadOf(content.accessGrant)).iat * 1_000
    // `iat` is in whole seconds: a smaller difference may be rounding.
    if (Math.abs(aheadMs) >= 2_000) shiftMs = aheadMs
  } catch {}
  return { renewAtMs: Date.parse(content.renewAfter) + shiftMs, expiresAtMs: Date.parse(content.expiresAt) + shiftMs }
}

/** The payload of a JWS as a binary string. Throws if there is none. */
export function payloadOf(token: string): string {
  return atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))
}
