import { type DeliveryEventType, type FeedEventType, feedEvents } from '../../contract/event-kinds.ts'
import type { FieldMapping } from '../../contract/lead-fields.ts'
import type { Lead } from '../leads/model.ts'

export type SubscriptionStatus = 'enabled' | 'disabled'
export const disabledByService = ['rejected_auth', 'gone', 'failing'] as const
export type DisabledReason = 'operator' | (typeof disabledByService)[number]

/** An event about a subscription. It stays in its document until the event feed has it. */
type SubscriptionNotice = { noticeId: string; at: Date } & (
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
export interface LeadSubscription extends Receives {
  subscriptionId: string
  workspaceId: string
  destination: SealedDestination
  name?: string
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
  /** Workflow of new deliveries. Its id is empty if it was removed. */
  workflow?: Workflow
  recovery?: DeliveryRecovery
  /** Changes of the subscription itself, newest first. */
  audit: SubscriptionAuditEntry[]
  createdAt: Date
  updatedAt: Date
}

/** Number of consecutive 404 answers that disable a subscription (contract, section 5). */
export const defaultDisableAfterNotFound = 5

/** Maximum number of audit entries kept per subscription. */
export const auditMax = 100

export type LeadSubscriptionDocument = Omit<LeadSubscription, 'subscriptionId'> & {
  _id: string
  /** State of the rate limit (`reserveRequests` in `claims.ts`). */
  rateFreeAt?: number
  /** `hook <n>` or `leads <n>`, unique in the workspace. `n` is below the maximum number. */
  place?: string
  /** Set while the subscription is being deleted. Queries then skip it. */
  deleted?: true
  /** Ids of the last operations (`core/mongodb/recorded-operations.ts`). */
  operations?: string[]
}

export const toSubscription = ({
  _id,
  operations: _,
  deleted: __,
  rateFreeAt: ___,
  place: ____,
  ...rest
}: LeadSubscriptionDocument): LeadSubscription => ({
  subscriptionId: _id,
  ...rest,
})

export const handoffWhens = ['accepted', 'failed', 'ended'] as const
/** Result of a delivery that causes its hand-off. `ended` means any result. */
export type HandoffWhen = (typeof handoffWhens)[number]

/** The workflow to which a subscription hands off its deliveries when they end. */
export interface Workflow {
  workflowId: string
  when: HandoffWhen
}

export interface Handoff {
  workflowId: string
  outcome: 'accepted' | 'failed'
  at: Date
}

/** Sources of leads: each form, and all services together. */
export const leadSources = ['pre-chat-form', 'offline-form', 'services'] as const
type LeadSource = (typeof leadSources)[number]

/** What is sent to a destination by itself. A requested delivery is always sent. */
export interface EventPolicy {
  types: DeliveryEventType[]
  /** Sources of the leads. Empty for all. */
  sources: LeadSource[]
  /** Public site keys of the installations. Empty for all, and for leads without an installation. */
  installations: string[]
}

/** The policy of subscriptions without one. */
export const defaultPolicy: EventPolicy = { types: ['lead.ready-for-delivery'], sources: [], installations: [] }

/** What a destination receives. */
export interface Receives extends FieldMapping {
  /** Set for an event hook, which is a resource apart from lead subscriptions. */
  resource?: 'hook'
  /** True if captured leads are sent by themselves, as `lead.ready-for-delivery`. */
  automatic: boolean
  policy?: EventPolicy
  /**
   * Names under which a hook sends events. Endpoints for operational events, which came before hooks,
   * keep the name that they know.
   */
  sentAs?: Partial<Record<FeedEventType, FeedEventType>>
  /** Number of the last feed entry whose deliveries exist. Absent if no event of the feed is sent. */
  followedTo?: number
}

/** What endpoints for operational events receive. */
export const operationalEvents: Pick<Receives, 'policy' | 'sentAs'> = {
  policy: { ...defaultPolicy, types: ['subscription.disabled', 'subscription.failing'] },
  sentAs: { 'subscription.failing': 'lead.delivery-failed' },
}

export const isHook = ({ resource }: Pick<Receives, 'resource'>) => resource === 'hook'

const isOfFeed = (type: DeliveryEventType): type is FeedEventType => Object.hasOwn(feedEvents, type)

export const followsFeed = ({ types }: EventPolicy) => types.some(isOfFeed)

export function coversLead(
  { sources, installations }: EventPolicy,
  { source, formSubmissionId, publicSiteKey }: Pick<Lead, 'source' | 'formSubmissionId' | 'publicSiteKey'>,
) {
  const from = formSubmissionId === undefined ? 'services' : source
  return (
    (sources.length === 0 || sources.some((each) => each === from)) &&
    (installations.length === 0 || (publicSiteKey !== undefined && installations.includes(publicSiteKey)))
  )
}

export const recoverableStatuses = ['failed', 'dead_lettered', 'held'] as const
export type RecoverableStatus = (typeof recoverableStatuses)[number]

/**
 * Selects the deliveries that a recovery schedules again, by their status, event and the time of
 * their creation.
 */
export interface RecoveryRange {
  since: Date
  /** End of the period. A delivery that was created at exactly this time is not included. */
  until: Date
  statuses: RecoverableStatus[]
  /** Absent for all. */
  eventTypes?: DeliveryEventType[]
}

/** The last recovery of a subscription. A subscription has one running recovery at most. */
export interface DeliveryRecovery extends RecoveryRange {
  recoveryId: string
  requestedAt: Date
  /**
   * Statuses that the recovery has not searched completely. The recovery currently searches for
   * deliveries with the first status of the list.
   */
  remaining: RecoverableStatus[]
  /**
   * The last delivery that was found with the first remaining status. The search continues after
   * it.
   */
  after?: { createdAt: Date; id: string }
  /** Due time of the next delivery that the recovery schedules. */
  nextDueAt: Date
  recovered: number
  /**
   * Time at which a core may take the next step. While a step runs, it is the end of the step's
   * lease. Absent after the recovery has ended.
   */
  nextStepAt?: Date
  /** Token of the lease. A core whose lease was taken over has another one and cannot change the recovery. */
  fencingToken: number
  finishedAt?: Date
}

/**
 * URL of a destination. Its path and query may contain credentials, so it is stored encrypted, and
 * only its origin is shown.
 */
export interface SealedDestination {
  sealed: string
  /** Scheme, host and port. Values of custom headers belong to the origin they were entered for. */
  origin: string
}

/** A signing secret of a subscription. */
export interface WebhookSecret {
  secretId: string
  sealed: string
  /** First characters of the secret, so that operators can identify it. */
  hint: string
  createdAt: Date
  /**
   * Time after which requests are no longer signed with this secret. Set when a newer secret
   * replaces this one.
   */
  expiresAt?: Date
  /**
   * Set by a rotation and removed when an operator activates the secret. While it is set, an older
   * live secret signs `X-Service-Webhook-Signature`.
   */
  pending?: true
}

/** A header that the operator adds to each request of a subscription. */
export interface CustomHeader {
  name: string
  sealed: string
}
