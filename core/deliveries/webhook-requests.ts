import { randomBytes } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { type Core, perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { countFitting } from '../page-token.ts'
import type { TakenDelivery } from './queue.ts'
import type { CustomHeader, LeadSubscription, SealedDestination, WebhookSecret } from './subscription-model.ts'

/** Decrypted URL, secrets and header values of a subscription. */
export interface SigningSecrets {
  url: string
  /** Secret that signs `X-Service-Webhook-Signature`. */
  active: string
  /** Secrets that sign `webhook-signature`, newest first. */
  all: string[]
  /** Custom headers, with lower-case names. */
  headers: Record<string, string>
}

/**
 * Maximum total size in bytes of the bodies in one claim. It keeps the response below the size
 * limit of the worker.
 */
const bodiesMaxBytes = 8 * 1024 * 1024

/** Returns how many of the first deliveries fit into a message, at least one. */
export const countFittingBodies = (deliveries: { body: Uint8Array }[]) =>
  countFitting(deliveries, ({ body }) => body.length, bodiesMaxBytes)

export const newClaimId = () => `clm_${randomBytes(18).toString('base64url')}`

type Sealed = WebhookSecret | CustomHeader | SealedDestination

/**
 * Cache of decrypted secrets. Each key is an object of a cached subscription, so an entry is
 * removed together with its subscription.
 */
const openedOf = perCore(() => new WeakMap<Sealed, string>())

/**
 * Returns the decrypted URL, secrets and header values of the subscription's requests at the time
 * `at`. Returns undefined if any of them cannot be decrypted, so that deliveries of other
 * subscriptions are still sent.
 */
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

/** Creates the signed request of the delivery's latest attempt. */
export function makeRequest(
  { config, now }: Core,
  {
    deliveryId,
    subscriptionId,
    attempts,
    body,
    traceparent,
  }: Pick<TakenDelivery, 'deliveryId' | 'subscriptionId' | 'attempts' | 'body' | 'traceparent'>,
  claimId: string,
  { url, headers, ...secrets }: SigningSecrets,
) {
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

/**
 * Maximum number of replaced secrets with which requests are still signed. The newest secret does
 * not count.
 */
const maxRotatedOut = 10

export const defaultOverlapSeconds = 86_400

/**
 * Creates a new secret. `secret` is the plain text, to be shown once. `kept` is the form that is
 * stored.
 */
export function newWebhookSecret(
  secretBox: Pick<SecretBox, 'seal'>,
  createdAt: Date,
  secretId: string = newId('key'),
): { secret: string; kept: WebhookSecret } {
  const secret = prefix + randomBytes(32).toString('base64')
  const hint = secret.slice(0, prefix.length + 4)
  return { secret, kept: { secretId, sealed: secretBox.seal(secret), hint, createdAt } }
}

/** Returns the secrets that have not expired at the time `at`, newest first. */
export function liveSecrets(secrets: WebhookSecret[], at: Date) {
  return secrets.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > at)
}

/**
 * Returns the secret that signs `X-Service-Webhook-Signature` at the time `at`. This is the newest
 * activated secret. If the overlap of every activated secret has ended, it is the oldest live one.
 */
export function activeSecret(secrets: WebhookSecret[], at: Date) {
  const live = liveSecrets(secrets, at)
  return live.find(({ pending }) => !pending) ?? live.at(-1)
}

/** Returns the list of secrets as it is after the activation of this secret. */
export function activatedSecrets(secrets: WebhookSecret[], secretId: string): WebhookSecret[] {
  return secrets.map((secret) => {
    const { pending: _, ...activated } = secret
    return secret.secretId === secretId ? activated : secret
  })
}

/**
 * Returns the list of secrets after a rotation, with `fresh` in front. `seen` is the list when the
 * call began. Requests are signed with the secrets in `seen` for `overlapSeconds` more seconds. If
 * a concurrent call added a secret, requests are signed with it for at least a day. Existing expiry
 * times are kept. Errors: `RateLimited` if requests would be signed with too many secrets.
 */
export function rotatedSecrets(
  secrets: WebhookSecret[],
  fresh: WebhookSecret,
  { seen, overlapSeconds }: { seen: WebhookSecret[]; overlapSeconds: number },
): WebhookSecret[] {
  // An earlier run of the same operation added the secret. The write detects the repetition.
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
  if (ending.length <= maxRotatedOut) return [{ ...fresh, pending: true }, ...ending]
  const firstEnd = Math.min(...ending.map((secret) => endOf(secret).getTime()))
  throw new ServiceError(ErrorCode.RATE_LIMITED, { retryAfter: Math.ceil((firstEnd - at.getTime()) / 1000) })
}

export const maskedSecret = ({ hint }: WebhookSecret) => `${hint}••••`
