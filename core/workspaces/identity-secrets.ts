import { randomBytes } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import type { Installation, SealedIdentitySecret } from './workspace-store.ts'

export interface IdentitySecret {
  kid: string
  secret: string
}

export const defaultOverlapSeconds = 86_400

/** Most secrets that are kept beside the current one. */
const maxReplaced = 10

/** A secret that nobody has seen yet. */
export function newIdentitySecret(secretBox: Pick<SecretBox, 'seal'>, kid: string): SealedIdentitySecret {
  return { kid, sealed: secretBox.seal(randomBytes(32).toString('base64url')) }
}

/** Errors: `IdempotencyConflict` when the secret is no longer live, so that nobody is given one that is refused. */
export function openIdentitySecret(
  secretBox: Pick<SecretBox, 'open'>,
  { identitySecrets }: Installation,
  kid: string,
): IdentitySecret {
  const found = identitySecrets.find((secret) => secret.kid === kid)
  if (!found) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
  return { kid, secret: secretBox.open(found.sealed) }
}

/**
 * The list with a fresh secret in front. The one before stays, and so does each that was replaced less than `overlapSeconds`
 * ago or after `seen` was read: a secret that another call has just handed out is never dropped.
 * Errors: `RateLimited` when too many would be kept.
 */
export function rotatedIdentitySecrets(
  secrets: SealedIdentitySecret[],
  fresh: SealedIdentitySecret,
  { seen, at, overlapSeconds }: { seen: SealedIdentitySecret[]; at: Date; overlapSeconds: number },
): SealedIdentitySecret[] {
  // An earlier run of the same operation, which the write will find.
  if (secrets.some(({ kid }) => kid === fresh.kid)) return secrets
  const [current, ...replaced] = secrets
  const seenReplaced = new Set(seen.slice(1).map(({ kid }) => kid))
  const age = ({ replacedAt = at }: SealedIdentitySecret) => at.getTime() - replacedAt.getTime()
  const kept = replaced.filter((secret) => !seenReplaced.has(secret.kid) || age(secret) < overlapSeconds * 1000)
  if (kept.length >= maxReplaced) {
    const retryAfter = Math.ceil(overlapSeconds - Math.max(...kept.map(age)) / 1000)
    throw new ServiceError(ErrorCode.RATE_LIMITED, { retryAfter: Math.max(1, retryAfter) })
  }
  return [
    fresh,
    ...(current ? [{ ...current, replacedAt: at }] : []),
    ...kept.map((secret) => ({ ...secret, replacedAt: secret.replacedAt ?? at })),
  ]
}
