import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { SecretBox } from '../keys/secret-box.ts'
import type { TakenDelivery } from './delivery-queue.ts'
import type { LeadSubscription, WebhookSecret } from './lead-subscription-store.ts'
import { webhookHeaders } from './webhook-request.ts'
import { liveSecrets } from './webhook-secrets.ts'

/** A request that is ready to be sent, under a claim. */
export interface ClaimedDelivery {
  deliveryId: string
  attemptId: string
  attemptNumber: number
  claimId: string
  destination: string
  url: string
  headers: Record<string, string>
  body: Uint8Array
  /** The trace in which the delivery was created. It is not sent to the destination. */
  traceparent?: string
}

/** Decrypted secrets, newest first. */
export type SigningSecrets = [string, ...string[]]

export interface ReadyRequests {
  /**
   * The secrets that sign at a time. Undefined if one cannot be decrypted, so that other deliveries
   * go on.
   */
  secretsOf(subscription: LeadSubscription, at: Date): SigningSecrets | undefined
  /** The latest attempt of a delivery, signed now. */
  make(
    delivery: Omit<TakenDelivery, 'subscriptionId' | 'tookOver'>,
    under: { claimId: string; subscription: LeadSubscription; secrets: SigningSecrets },
  ): ClaimedDelivery
}

/** Limit of body bytes in one claim, so that the response stays within the worker's limit. */
export const bodiesMaxBytes = 8 * 1024 * 1024

export const newClaimId = (): string => `clm_${randomBytes(18).toString('base64url')}`

export function createReadyRequests(dependencies: {
  secretBox: Pick<SecretBox, 'open'>
  logger: Pick<Logger, 'error'>
  now: () => number
}): ReadyRequests {
  const { secretBox, logger, now } = dependencies
  /** Cached while the subscription is cached. */
  const opened = new WeakMap<WebhookSecret, string>()

  function open(secret: WebhookSecret): string {
    const known = opened.get(secret) ?? secretBox.open(secret.sealed)
    opened.set(secret, known)
    return known
  }

  return {
    secretsOf({ subscriptionId, secrets }, at) {
      try {
        const [newest, ...older] = liveSecrets(secrets, at).map(open)
        if (newest !== undefined) return [newest, ...older]
      } catch {
        // The error is not logged because it may quote the secret.
      }
      logger.error(
        { subscriptionId },
        'decrypting a webhook secret failed; its deliveries wait: check SECRET_KEYS for its key',
      )
      return undefined
    },

    make({ deliveryId, attempts, body, traceparent }, { claimId, subscription, secrets }) {
      const { attemptId = '', correlationId = '' } = attempts.at(-1) ?? {}
      return {
        deliveryId,
        attemptId,
        attemptNumber: attempts.length,
        claimId,
        destination: subscription.subscriptionId,
        url: subscription.destinationUrl,
        headers: webhookHeaders({ deliveryId, correlationId, body, secrets, at: now() }),
        body,
        traceparent,
      }
    },
  }
}
