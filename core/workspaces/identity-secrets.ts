import { randomBytes } from 'node:crypto'
import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { isShown } from '../keys/secret-box.ts'
import type { Installation, SealedIdentitySecret } from './model.ts'

export interface IdentitySecret {
  kid: string
  secret: string
}

export const defaultOverlapSeconds = 86_400

/** Secrets that are kept in addition to the current one. */
const maxReplaced = 10

export const newIdentitySecret = (core: Core, kid: string): SealedIdentitySecret => ({
  kid,
  sealed: core.secretBox.seal(randomBytes(32).toString('base64url')),
  createdAt: dateOf(core),
})

/** Returns the secret, masked unless it is fresh. Errors: `IdempotencyConflict` if it is no longer accepted. */
export function openIdentitySecret(core: Core, { identitySecrets }: Installation, kid: string): IdentitySecret {
  const found = identitySecrets.find((secret) => secret.kid === kid)
  if (!found) throw new ServiceError('IdempotencyConflict')
  return { kid, secret: isShown(found.createdAt, dateOf(core)) ? core.secretBox.open(found.sealed) : '••••' }
}

/**
 * Returns the secrets after a rotation: `fresh`, the current one, and those that were replaced less than
 * `overlapSeconds` ago. Concurrent calls may have replaced some since this call read `seen`; these are kept
 * too, because a caller may just have received them. Errors: `RateLimited` if too many would be kept.
 */
export function rotatedIdentitySecrets(
  secrets: SealedIdentitySecret[],
  fresh: SealedIdentitySecret,
  { seen, at, overlapSeconds }: { seen: SealedIdentitySecret[]; at: Date; overlapSeconds: number },
): SealedIdentitySecret[] {
  // An earlier run of the operation has added it.
  if (secrets.some(({ kid }) => kid === fresh.kid)) return secrets
  const [current, ...replaced] = secrets
  const seenReplaced = new Set(seen.slice(1).map(({ kid }) => kid))
  const age = ({ replacedAt = at }: SealedIdentitySecret) => at.getTime() - replacedAt.getTime()
  const kept = replaced.filter((secret) => !seenReplaced.has(secret.kid) || age(secret) < overlapSeconds * 1000)
  if (kept.length >= maxReplaced) {
    const retryAfter = Math.ceil(overlapSeconds - Math.max(...kept.map(age)) / 1000)
    throw new ServiceError('RateLimited', { retryAfter: Math.max(1, retryAfter) })
  }
  return [
    fresh,
    ...(current ? [{ ...current, replacedAt: at }] : []),
    ...kept.map((secret) => ({ ...secret, replacedAt: secret.replacedAt ?? at })),
  ]
}
