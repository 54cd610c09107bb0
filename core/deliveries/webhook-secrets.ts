import { randomBytes } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import type { WebhookSecret } from './lead-subscription-store.ts'

const prefix = 'whsec_'

/** How many rotated-out secrets may sign beside the newest one. */
const maxRotatedOut = 10

export const defaultOverlapSeconds = 86_400

/** A new secret in plain text, to be shown once, and the form that is stored. */
export function newWebhookSecret(
  secretBox: Pick<SecretBox, 'seal'>,
  createdAt: Date,
  secretId: string = newId('key'),
): { secret: string; kept: WebhookSecret } {
  const secret = prefix + randomBytes(32).toString('base64')
  const hint = secret.slice(0, prefix.length + 4)
  return { secret, kept: { secretId, sealed: secretBox.seal(secret), hint, createdAt } }
}

/** The secrets that sign at a time, newest first. */
export function liveSecrets(secrets: WebhookSecret[], at: Date): WebhookSecret[] {
  return secrets.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > at)
}

/**
 * The list with `fresh` in front. Secrets that were current when the call began sign for
 * `overlapSeconds` more. One that another call issued since then signs for at least a day. Existing
 * expiry times are kept. Errors: `RateLimited` if too many would sign.
 */
export function rotatedSecrets(
  secrets: WebhookSecret[],
  fresh: WebhookSecret,
  { seen, overlapSeconds }: { seen: WebhookSecret[]; overlapSeconds: number },
): WebhookSecret[] {
  // Added by an earlier run of the same operation; the write detects it.
  if (secrets.some(({ secretId }) => secretId === fresh.secretId)) return secrets
  const at = fresh.createdAt
  const seenIds = new Set(seen.map(({ secretId }) => secretId))
  const endOf = ({ secretId, expiresAt }: WebhookSecret) => {
    const seconds = seenIds.has(secretId) ? overlapSeconds : Math.max(overlapSeconds, defaultOverlapSeconds)
    return expiresAt ?? new Date(at.getTime() + seconds * 1000)
  }
  const ending = liveSecrets(
    secrets.map((secret) => ({ ...secret, expiresAt: endOf(secret) })),
    at,
  )
  if (ending.length <= maxRotatedOut) return [fresh, ...ending]
  const firstEnd = Math.min(...ending.map((secret) => endOf(secret).getTime()))
  throw new ServiceError(ErrorCode.RATE_LIMITED, { retryAfter: Math.ceil((firstEnd - at.getTime()) / 1000) })
}

export const maskedSecret = ({ hint }: WebhookSecret): string => `${hint}••••`
