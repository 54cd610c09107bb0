import { type DeliveryEventType, type FeedEventType, feedEvents } from '../../contract/event-kinds.ts'
import type { FieldMapping } from '../../contract/lead-fields.ts'
import type { Lead } from '../leads/model.ts'

export type SubscriptionStatus = 'enabled' | 'disabled'
export const disabledByService = ['rejected_auth', 'gone', 'failing'] as const
export type DisabledReason = 'operator' | (typeof disabledByService)[number]

export type NoticeContent =
  | { kind: 'subscription.disabled'; reason: DisabledReason }
  // The first dead letter since the last success.
  | { kind: 'subscription.failing'; deliveryId: string }

/** A notice stays in its document until the event feed has it. */
type SubscriptionNotice = { noticeId: string; at: Date } & NoticeContent

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

/** A lead subscription or an event hook, and what it receives. */
export interface LeadSubscription extends Receives {
  subscriptionId: string
  workspaceId: string
  destination: SealedDestination
  name?: string
  /** Requests per second; absent or 0 for no limit. */
  maxPerSecond?: number
  /** Consecutive 404 answers that disable the subscription; 0 for never. */
  disableAfterNotFound?: number
  status: SubscriptionStatus
  disabledReason?: DisabledReason
  secrets: WebhookSecret[]
  /** Custom headers; absent if there are none. */
  headers?: CustomHeader[]
  /** Names of the headers that a move to another origin removed, until headers are set again. */
  droppedHeaders?: string[]
  /** Ids of the consecutive attempts that got a 404. */
  notFound: string[]
  /** Time of the first failed attempt since the last success. */
  failingSince?: Date
  /** Time of the first dead letter since the last success. */
  deadLettersSince?: Date
  /** Events that the feed lacks, oldest first. */
  notices?: SubscriptionNotice[]
  /** Last change of destination or secrets, or enabling. Earlier attempts cannot disable it. */
  judgedSince: Date
  /** Workflow of new deliveries. Its id is empty if it was removed. */
  workflow?: Workflow
  recovery?: DeliveryRecovery
  /** Changes of the subscription itself, newest first. */
  audit: SubscriptionAuditEntry[]
  createdAt: Date
  updatedAt: Date
}

export const defaultDisableAfterNotFound = 5

export const auditMax = 100

export type LeadSubscriptionDocument = Omit<LeadSubscription, 'subscriptionId'> & {
  _id: string
  /** State of the rate limit (`reserveRequests` in `claims.ts`). */
  rateFreeAt?: number
  /** `hook <n>` or `leads <n>`, unique in the workspace. `n` is below the maximum number. */
  place?: string
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
/** The result that causes a hand-off; `ended` is any. */
export type HandoffWhen = (typeof handoffWhens)[number]

export interface Workflow {
  workflowId: string
  when: HandoffWhen
}

export interface Handoff {
  workflowId: string
  outcome: 'accepted' | 'failed'
  at: Date
}

/** Each form is a source, and all services together are one. */
export const leadSources = ['pre-chat-form', 'offline-form', 'services'] as const
type LeadSource = (typeof leadSources)[number]

export interface EventPolicy {
  types: DeliveryEventType[]
  /** An empty list means all. */
  sources: LeadSource[]
  /** Public site keys. An empty list means all leads, also those without an installation. */
  installations: string[]
}

/** The policy of subscriptions without one. */
export const defaultPolicy: EventPolicy = { types: ['lead.ready-for-delivery'], sources: [], installations: [] }

export interface Receives extends FieldMapping {
  /** Set for an event hook, which is a resource apart from lead subscriptions. */
  resource?: 'hook'
  /** Whether captured leads are sent by themselves, as `lead.ready-for-delivery`. */
  automatic: boolean
  policy?: EventPolicy
  /** Names under which a hook sends events: endpoints for operational events keep theirs. */
  sentAs?: Partial<Record<FeedEventType, FeedEventType>>
  /** Number of the last feed entry whose deliveries exist. Absent if no event of the feed is sent. */
  followedTo?: number
}

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

/** Selects the deliveries that a recovery schedules again. */
export interface RecoveryRange {
  since: Date
  /** Deliveries that were created at exactly this time are not included. */
  until: Date
  statuses: RecoverableStatus[]
  eventTypes?: DeliveryEventType[]
}

/** The last recovery of a subscription, which has one running at most. */
export interface DeliveryRecovery extends RecoveryRange {
  recoveryId: string
  requestedAt: Date
  /** Statuses that are not searched completely. The first one is being searched. */
  remaining: RecoverableStatus[]
  /** Where the search of the first remaining status continues. */
  after?: { createdAt: Date; id: string }
  nextDueAt: Date
  recovered: number
  /** The next step is due at this time. During a step, its lease ends then. Absent after the recovery. */
  nextStepAt?: Date
  /** Fencing token. A core that has lost the lease cannot change the recovery. */
  fencingToken: number
  finishedAt?: Date
}

/** Sealed, because path and query may contain credentials. Only the origin is shown. */
export interface SealedDestination {
  sealed: string
  /** Scheme, host and port, to which the values of custom headers belong. */
  origin: string
}

export interface WebhookSecret {
  secretId: string
  sealed: string
  /** First characters of the secret, to recognise it. */
  hint: string
  createdAt: Date
  /** The secret signs until this time. Set when a newer one replaces it. */
  expiresAt?: Date
  /** The secret is not activated. An older live one signs `X-Service-Webhook-Signature`. */
  pending?: true
}

export interface CustomHeader {
  name: string
  sealed: string
}
