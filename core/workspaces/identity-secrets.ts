import { randomBytes } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { isShown } from '../keys/shown-secrets.ts'
import type { Installation, SealedIdentitySecret } from './model.ts'

export interface IdentitySecret {
  kid: string
  secret: string
}

export const defaultOverlapSeconds = 86_400

/** Maximum number of secrets kept in addition to the current one. */
const maxReplaced = 10

export function newIdentitySecret(
  secretBox: Pick<SecretBox, 'seal'>,
  kid: string,
  createdAt: Date,
): SealedIdentitySecret {
  return { kid, sealed: secretBox.seal(randomBytes(32).toString('base64url')), createdAt }
}

/**
 * Returns a secret in plain text if it is fresh, else masked. Errors: `IdempotencyConflict` if the installation no longer
 * accepts the secret, so that no invalid secret is returned.
 */
export function openIdentitySecret(
  secretBox: Pick<SecretBox, 'open'>,
  { identitySecrets }: Installation,
  kid: string,
  at: Date,
): IdentitySecret {
  const found = identitySecrets.find((secret) => secret.kid === kid)
  if (!found) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
  return { kid, secret: isShown(found.createdAt, at) ? secretBox.open(found.sealed) : '••••' }
}

/**
 * Returns the list of secrets after a rotation, with `fresh` first. The list keeps the current
 * secret, and each secret that was replaced less than `overlapSeconds` ago. `seen` is the list
 * that this call read at its start. Secrets that concurrent calls have replaced since that read
 * are kept too, because a caller may just have received them. Errors: `RateLimited` if too many
 * secrets would be kept.
 */
export function rotatedIdentitySecrets(
  secrets: SealedIdentitySecret[],
  fresh: SealedIdentitySecret,
  { seen, at, overlapSeconds }: { seen: SealedIdentitySecret[]; at: Date; overlapSeconds: number },
): SealedIdentitySecret[] {
  // An earlier run of the same operation has already added the secret, so the list stays unchanged.
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
