import { randomBytes } from 'node:crypto'
import { newId } from '../ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import type { WebhookSecret } from '../store/lead-subscriptions.ts'

const prefix = 'whsec_'

/** How many secrets that were rotated out may sign beside the newest one. */
const maxRotatedOut = 10

/** A secret that nobody has seen yet: to be shown once, and what is kept of it. */
export function newWebhookSecret(
  secretBox: Pick<SecretBox, 'seal'>,
  createdAt: Date,
): { secret: string; kept: WebhookSecret } {
  const secret = prefix + randomBytes(32).toString('base64')
  const hint = secret.slice(0, prefix.length + 4)
  return { secret, kept: { secretId: newId('key'), sealed: secretBox.seal(secret), hint, createdAt } }
}

/** The secrets that sign at a time, the newest first. */
export function liveSecrets(secrets: WebhookSecret[], at: Date): WebhookSecret[] {
  return secrets.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > at)
}

/** The list with a new secret in front; the one before ends at `expiresAt`, and of older ones the oldest go first. */
export function rotatedSecrets(secrets: WebhookSecret[], fresh: WebhookSecret, expiresAt: Date): WebhookSecret[] {
  const ending = secrets.map((secret) => (secret.expiresAt === undefined ? { ...secret, expiresAt } : secret))
  return [fresh, ...liveSecrets(ending, fresh.createdAt).slice(0, maxRotatedOut)]
}

export const maskedSecret = ({ hint }: WebhookSecret): string => `${hint}••••`
