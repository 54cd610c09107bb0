import { randomBytes } from 'node:crypto'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { type Core, perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { countFitting } from '../page-token.ts'
import type { TakenDelivery } from './queue.ts'
import type { CustomHeader, LeadSubscription, SealedDestination, WebhookSecret } from './subscription-model.ts'

/** Decrypted values for the requests of a subscription. */
export interface SigningSecrets {
  url: string
  /** The secret that signs `X-Service-Webhook-Signature`. */
  active: string
  /** The secrets that sign `webhook-signature`, newest first. */
  all: string[]
  /** Custom headers; their names are in lower case. */
  headers: Record<string, string>
}

/** Maximum size of the bodies in one claim, below the message limit of the worker. */
const bodiesMaxBytes = 8 * 1024 * 1024

export const countFittingBodies = (deliveries: { body: Uint8Array }[]) =>
  countFitting(deliveries, ({ body }) => body.length, bodiesMaxBytes)

export const newClaimId = () => `clm_${randomBytes(18).toString('base64url')}`

type Sealed = WebhookSecret | CustomHeader | SealedDestination

/** Caches decrypted values by objects of cached subscriptions. An entry goes with its subscription. */
const openedOf = perCore(() => new WeakMap<Sealed, string>())

/** Returns undefined if a secret cannot be decrypted, so that other subscriptions are still served. */
export function signingSecretsOf(
  core: Core,
  { subscriptionId, destination, secrets, headers = [] }: LeadSubscription,
  at: Date,
): SigningSecrets | undefined {
  const opened = openedOf(core)
  function open(secret: Sealed) {
    const known = opened.get(secret) ?? core.secretBox.open(secret.sealed)
    opened.set(secret, known)
    return known
  }
  try {
    const active = activeSecret(secrets, at)
    if (active) {
      return {
        url: open(destination),
        active: open(active),
        all: liveSecrets(secrets, at).map(open),
        headers: Object.fromEntries(headers.map((header) => [header.name, open(header)])),
      }
    }
  } catch {
    // The error is not logged because it may quote the secret.
  }
  core.logger.error(
    { subscriptionId },
    'decrypting the destination or a webhook secret failed; deliveries wait until SECRET_KEYS contains its key',
  )
  return undefined
}

export function makeRequest(
  { config, now }: Core,
  delivery: Pick<TakenDelivery, 'deliveryId' | 'subscriptionId' | 'attempts' | 'body' | 'traceparent'>,
  claimId: string,
  { url, headers, ...secrets }: SigningSecrets,
) {
  const { deliveryId, subscriptionId, attempts, body, traceparent } = delivery
  const { attemptId = '', correlationId = '' } = attempts.at(-1) ?? {}
  return {
    deliveryId,
    attemptId,
    attemptNumber: attempts.length,
    claimId,
    destination: subscriptionId,
    url,
    headers: { ...headers, ...webhookHeaders({ deliveryId, correlationId, body, secrets, at: now() }) },
    body,
    traceparent,
    deadlineMs: config.DELIVERY_ATTEMPT_DEADLINE_MS,
    leaseMs: config.DELIVERY_LEASE_MS,
  }
}

/** A request that the worker with this claim can send without changes. */
export type ClaimedDelivery = ReturnType<typeof makeRequest>

const prefix = 'whsec_'

/** Requests are signed with at most this number of replaced secrets. */
const maxRotatedOut = 10

export const defaultOverlapSeconds = 86_400

/** `secret` is the plain text, to be shown once, and `kept` the stored form. */
export function newWebhookSecret(
  secretBox: Pick<SecretBox, 'seal'>,
  createdAt: Date,
  secretId: string = newId('key'),
): { secret: string; kept: WebhookSecret } {
  const secret = prefix + randomBytes(32).toString('base64')
  const hint = secret.slice(0, prefix.length + 4)
  return { secret, kept: { secretId, sealed: secretBox.seal(secret), hint, createdAt } }
}

/** Returns the secrets that have not expired, newest first. */
export function liveSecrets(secrets: WebhookSecret[], at: Date) {
  return secrets.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > at)
}

/**
 * Returns the secret that signs `X-Service-Webhook-Signature`: the newest activated one or, after the end
 * of every overlap, the oldest live one.
 */
export function activeSecret(secrets: WebhookSecret[], at: Date) {
  const live = liveSecrets(secrets, at)
  return live.find(({ pending }) => !pending) ?? live.at(-1)
}

export function activatedSecrets(secrets: WebhookSecret[], secretId: string): WebhookSecret[] {
  return secrets.map(({ pending, ...secret }) =>
    secret.secretId === secretId || !pending ? secret : { ...secret, pending },
  )
}

/**
 * Returns the secrets after a rotation, with `fresh` in front. Those in `seen`, which is the list when the
 * call began, sign for `overlapSeconds` more, and those of concurrent calls for at least a day. Existing
 * expiry times are kept. Errors: `RateLimited` if too many would sign.
 */
export function rotatedSecrets(
  secrets: WebhookSecret[],
  fresh: WebhookSecret,
  { seen, overlapSeconds }: { seen: WebhookSecret[]; overlapSeconds: number },
): WebhookSecret[] {
  // An earlier run added the secret. The write detects the repetition.
  if (secrets.some(({ secretId }) => secretId === fresh.secretId)) return secrets
  const at = fresh.createdAt
  const seenIds = new Set(seen.map(({ secretId }) => secretId))
  const endOf = ({ secretId, expiresAt }: WebhookSecret) => {
    const seconds = seenIds.has(secretId) ? overlapSeconds : Math.max(overlapSeconds, defaultOverlapSeconds)
    return expiresAt ?? new Date(at.getTime() + seconds * 1000)
  }
  const ended = secrets.map((secret) => ({ ...secret, expiresAt: endOf(secret) }))
  const ending = liveSecrets(ended, at)
  if (ending.length <= maxRotatedOut) return [{ ...fresh, pending: true }, ...ending]
  const firstEnd = Math.min(...ending.map((secret) => endOf(secret).getTime()))
  throw new ServiceError('RateLimited', { retryAfter: Math.ceil((firstEnd - at.getTime()) / 1000) })
}

export const maskedSecret = ({ hint }: WebhookSecret) => `${hint}••••`
