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
  /** The trace in which the delivery was made; it is not sent to the destination. */
  traceparent?: string
}

/** Secrets in clear, the newest first. */
export type SigningSecrets = [string, ...string[]]

export interface ReadyRequests {
  /** The secrets that sign at a time; undefined where one cannot be opened: that must not stop the deliveries of others. */
  secretsOf(subscription: LeadSubscription, at: Date): SigningSecrets | undefined
  /** The latest attempt of a delivery, signed now. */
  make(
    delivery: Omit<TakenDelivery, 'subscriptionId' | 'tookOver'>,
    under: { claimId: string; subscription: LeadSubscription; secrets: SigningSecrets },
  ): ClaimedDelivery
}

/** Bodies in one answer to a worker, so that it stays below what a worker reads. */
export const bodiesMaxBytes = 8 * 1024 * 1024

export const newClaimId = (): string => `clm_${randomBytes(18).toString('base64url')}`

export function createReadyRequests(dependencies: {
  secretBox: Pick<SecretBox, 'open'>
  logger: Pick<Logger, 'error'>
  now: () => number
}): ReadyRequests {
  const { secretBox, logger, now } = dependencies
  /** As long as the subscription is remembered. */
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
        // What was wrong with it may quote it.
      }
      logger.error({ subscriptionId }, 'a secret cannot be opened: is its key missing in SECRET_KEYS?')
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
        ...(traceparent && { traceparent }),
      }
    },
  }
}
