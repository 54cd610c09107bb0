import type { Clock } from '../../../browser/platform.ts'
import { payloadOf } from '../session/grant-times.ts'
import { toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { IdentityProvider, VisitorIdentity } from '../vocabulary/types.ts'

const providerTimeoutMs = 15_000

/**
 * Asks the host's identity provider for an assertion. Returns undefined if no user is logged in.
 *
 * @throws WidgetError `identity_unavailable` if the provider fails or does not answer in time;
 * `identity_mismatch` if the assertion has another subject than `wanted`
 */
export async function requestAssertion(
  provider: IdentityProvider | undefined,
  clock: Clock,
  wanted?: VisitorIdentity,
): Promise<string | undefined> {
  const unavailable = new WidgetError('identity_unavailable', { retryable: true })
  let assertion: string | undefined
  try {
    assertion = await new Promise<string | undefined>((resolve, reject) => {
      const timer = clock.setTimeout(() => reject(unavailable), providerTimeoutMs)
      const done = () => clock.clearTimeout(timer)
      Promise.resolve(provider?.(wanted)).finally(done).then(resolve, reject)
    })
  } catch {
    throw unavailable
  }
  const subject = wanted?.externalSubject
  // Only the service verifies the assertion. This rejects one that the caller does not expect.
  if (assertion && subject !== undefined && claimsOf(assertion)?.sub !== subject)
    throw new WidgetError('identity_mismatch')
  return assertion
}

/** Ignores that identification was turned off after the configuration was loaded. */
export function ifNotAdvertised(error: unknown): undefined {
  if (toWidgetError(error).code !== 'RouteNotAdvertised') throw error
}

/** Returns the claims of a JWS without verifying them, or undefined if the JWS cannot be parsed. */
export function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(payloadOf(token), (character) => character.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}
