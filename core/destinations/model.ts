import type { HandsOff } from './handoff-model.ts'
import type { Receives } from './policy-model.ts'
import type { DeliveryRecovery } from './recovery-model.ts'
import type { CustomHeader, SealedDestination, WebhookSecret } from './secrets-model.ts'

export type SubscriptionStatus = 'enabled' | 'disabled'
/** Why the service has disabled a subscription. */
export const disabledByService = ['rejected_auth', 'gone', 'failing'] as const
export const disabledReasons = ['operator', ...disabledByService] as const
export type DisabledReason = (typeof disabledReasons)[number]

/** An event about a subscription. It stays in its document until the event feed has it. */
export type SubscriptionNotice = { noticeId: string; at: Date } & (
  | { kind: 'subscription.disabled'; reason: DisabledReason }
  // The first dead letter since the last success.
  | { kind: 'subscription.failing'; deliveryId: string }
)

export interface SubscriptionAuditEntry {
  at: Date
  actor: string
  action:
    | 'created'
    | 'updated'
    | 'enabled'
    | 'disabled'
    | 'secret_rotated'
    | 'secret_activated'
    | 'attempt_created'
    | 'attempt_retried'
    | 'recovery_started'
  attemptId?: string
  disabledReason?: DisabledReason
}

/** A destination and what it receives: a lead subscription or an event hook. */
export interface LeadSubscription extends HandsOff, Receives {
  subscriptionId: string
  workspaceId: string
  destination: SealedDestination
  /** Maximum number of requests per second. Absent or 0 if there is no limit. */
  maxPerSecond?: number
  /** Number of consecutive 404 answers that disable the subscription; 0 for never. Absent: 5. */
  disableAfterNotFound?: number
  status: SubscriptionStatus
  disabledReason?: DisabledReason
  /** Secrets, newest first. */
  secrets: WebhookSecret[]
  /** Custom headers. Absent if there are none. */
  headers?: CustomHeader[]
  /**
   * Names of the headers that were removed when the destination moved to another origin. Empty
   * after headers are set again.
   */
  droppedHeaders?: string[]
  /** Ids of the consecutive attempts that the destination answered with 404. */
  notFound: string[]
  /** Time of the first failed attempt. Absent if no attempt has failed since the last success. */
  failingSince?: Date
  /** Time of the first dead letter since the last success. */
  deadLettersSince?: Date
  /** Events that are not stored as deliveries yet, oldest first. */
  notices?: SubscriptionNotice[]
  /**
   * Time of the last change of destination or secrets, or of the last enabling. An answer to an
   * attempt that began earlier cannot disable the subscription.
   */
  judgedSince: Date
  recovery?: DeliveryRecovery
  /** Changes of the subscription itself, newest first. */
  audit: SubscriptionAuditEntry[]
  createdAt: Date
  updatedAt: Date
}

export type SubscriptionChanges = Partial<
  Pick<
    LeadSubscription,
    | 'destination'
    | 'mappedFields'
    | 'sentNames'
    | 'automatic'
    | 'policy'
    | 'followedTo'
    | 'maxPerSecond'
    | 'disableAfterNotFound'
    | 'workflow'
    | 'headers'
    | 'droppedHeaders'
    | 'judgedSince'
  >
>

/** Number of consecutive 404 answers that disable a subscription (contract, section 5). */
export const defaultDisableAfterNotFound = 5

/** Maximum number of audit entries kept per subscription. */
export const auditMax = 100
