import type { Binary } from 'mongodb'
import type { DeliveryEventType } from '../../contract/event-kinds.ts'
import type { Handoff, Workflow } from './subscription-model.ts'

/** Status of a delivery and of its latest attempt (contract, section 5). */
export const deliveryStatuses = [
  'pending',
  'sending',
  'retry_scheduled',
  'held',
  'accepted',
  'failed',
  'dead_lettered',
] as const
export type DeliveryStatus = (typeof deliveryStatuses)[number]

/** Statuses in which an attempt can end. */
type SettledStatus = Extract<DeliveryStatus, 'accepted' | 'failed' | 'retry_scheduled' | 'dead_lettered'>

export type ResponseClass =
  | 'accepted'
  | 'rejected_payload'
  | 'rejected_auth'
  | 'gone'
  | 'conflict'
  | 'redirected'
  | 'rejected'
  | 'rate_limited'
  | 'server_error'
  | 'timeout'
  | 'network_error'
  | 'destination_blocked'
  | 'suppressed'
  | 'unreadable_answer'

/** Phase in which an attempt without a complete answer ended. */
export type AttemptPhase = 'resolve' | 'connect' | 'tls' | 'headers' | 'body'

/**
 * Reason why an attempt has no complete answer. Only these fixed values are stored, so that no raw
 * error or address is exposed.
 */
export type FailureReason =
  | 'timeout'
  | 'destination_blocked'
  | 'name_not_found'
  | 'name_service_failed'
  | 'connection_refused'
  | 'unreachable'
  | 'connection_reset'
  | 'certificate_invalid'
  | 'tls_failed'
  | 'protocol_error'
  | 'network_error'
  | 'response_too_large'

/** Facts that a worker observed: the destination's answer, or how the attempt failed. */
export type AttemptFacts =
  | { status: number; retryAfterMs?: number | undefined; text?: string }
  | { reason: FailureReason; phase?: AttemptPhase | undefined }

export interface AttemptOutcome {
  status: SettledStatus
  responseClass: ResponseClass
  responseStatus?: number
  /** Beginning of the destination's response, if the request was not accepted. */
  responseText?: string
  failureReason?: FailureReason
  failurePhase?: AttemptPhase
  durationMs?: number
  /** Id of the claim under which the attempt was sent. */
  claimId?: string
}

/**
 * One attempt. Its number is its position in the list of attempts. The latest attempt has the
 * status of its delivery.
 */
export interface DeliveryAttempt {
  attemptId: string
  correlationId: string
  /** True if a person or service requested the attempt; false for an automatic attempt. */
  manual: boolean
  /** Name of the requester; absent for automatic attempts. */
  requestedBy?: string
  createdAt: Date
  updatedAt: Date
  outcome?: AttemptOutcome
}

/** A request that created an attempt. It is stored once, even if it is repeated. */
export interface DeliveryOperation {
  /** Key of the request: workspace, route and idempotency key. Unique over all deliveries. */
  key: string
  inputHash: string
  attemptId: string
}

/** One event that is sent to one destination, with all attempts. */
export interface Delivery extends Pick<FeedFields, 'handoff'> {
  deliveryId: string
  workspaceId: string
  eventType: DeliveryEventType
  /** The lead and the conversation that the event is about. The delivery is removed with them. */
  leadId?: string
  conversationId?: string
  /** Sequence of the message whose text the body has. The text is removed when the message is withdrawn. */
  messageSequence?: number
  subscriptionId: string
  status: DeliveryStatus
  attempts: DeliveryAttempt[]
  operations: DeliveryOperation[]
  createdAt: Date
  updatedAt: Date
  /** Time of the last manual request for an attempt. */
  requestedAt?: Date
  /**
   * Time at which a worker must act next: now, at the next retry, or when the lease expires. Absent
   * if no worker must act, which keeps the indexes of the queue small.
   */
  dueAt?: Date
}

/** The claim of a delivery that is being sent. */
export interface DeliveryClaim {
  claimId: string
  workerId: string
  at: Date
  /**
   * Time at which the subscription was read for this claim. If the subscription was changed after
   * this time, an answer to this attempt does not disable it.
   */
  knownAt: Date
  /** Set if the previous claim of the delivery expired without a result. */
  tookOver?: boolean
}

/** Fields of a delivery that only the queue uses. */
export interface QueueFields {
  /** Copy of the subscription id. The indexes of the queue begin with it. */
  destination: string
  claim?: DeliveryClaim
  /** Trace in which the delivery was created (W3C Trace Context), if any. */
  traceparent?: string
  /** Ids of the scheduled automatic attempt. */
  next?: { attemptId: string; correlationId: string }
  /** Time at which the message that the delivery carries was withdrawn. */
  withdrawnAt?: Date
  /** Value of `dueAt` before the delivery was held. */
  heldDueAt?: Date
  /**
   * Id of the last claim whose worker returned the delivery unsent. If that worker repeats the
   * return, this id shows that it is a repeat.
   */
  releasedClaimId?: string
  /**
   * What the last attempt means for the subscription, such as a fault that disables it, or a dead
   * letter. Removed when it has been handled.
   */
  verdict?: { kind: 'rejected_auth' | 'gone' | 'not_found' | 'dead_lettered'; attemptId: string; sentAt: Date }
  /** Time at which an ended delivery is deleted. */
  deleteAt?: Date
}

export interface NewDelivery extends Delivery, Pick<FeedFields, 'unannounced' | 'workflow'> {
  body?: Uint8Array
  heldDueAt?: Date
  deleteAt?: Date
  claim?: DeliveryClaim
  traceparent?: string
}

export interface DeliveryQuery {
  workspaceId: string
  subscriptionId?: string
  leadId?: string
  statuses?: DeliveryStatus[]
  /** Creation at this time or later. */
  since?: Date
  /** Creation before this time. */
  until?: Date
  before?: { createdAt: Date; id: string }
}

/**
 * A write that ends a claim. It stores the outcome of an attempt, or returns the delivery to the
 * queue. It applies only while the delivery still has this claim.
 */
export type Settlement = { deliveryId: string; claimId: string; at: Date } & (
  | {
      kind: 'outcome'
      attemptId: string
      /** Index of the attempt in the delivery's list of attempts. It must be the last one. */
      index: number
      outcome: AttemptOutcome
      fault?: NonNullable<QueueFields['verdict']>
      retry?: { attemptId: string; correlationId: string; dueAt: Date }
      deleteAt?: Date
    }
  | { kind: 'release' }
)

export type PendingFault = NonNullable<QueueFields['verdict']> & { deliveryId: string; subscriptionId: string }

/** What a delivery has for the event feed. */
export interface FeedFields {
  /** Set by the write that ends the delivery, until the feed has the entries of the end. */
  unannounced?: true
  /** Number of attempts whose ends have entries. */
  announcedAttempts?: number
  /** The subscription's workflow when the delivery was created. */
  workflow?: Workflow
  /** The one hand-off of the delivery. */
  handoff?: Handoff
}

export type DeliveryDocument = Omit<Delivery, 'deliveryId'> &
  QueueFields &
  FeedFields & {
    _id: string
    /**
     * Body of the webhook. Removed once the delivery is accepted, because it is never sent again.
     */
    body?: Binary | Uint8Array
  }

export function bytesOf(body: DeliveryDocument['body']): Uint8Array {
  if (body === undefined) return new Uint8Array()
  return body instanceof Uint8Array ? body : body.value()
}

/** Returns a document, which was read without its body, with its id under the name of the API. */
export const toDelivery = ({ _id: deliveryId, ...rest }: DeliveryDocument) => ({ deliveryId, ...rest })

/**
 * Matches every destination. Without this condition, queries do not use the indexes that begin with
 * the destination.
 */
export const anyDestination = { destination: { $gt: '' } }
