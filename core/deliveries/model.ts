import { randomUUID } from 'node:crypto'
import type { Binary } from 'mongodb'
import type * as proto from '#proto/lead/v1/delivery_pb.js'
import type { DeliveryEventType } from '../../contract/event-kinds.ts'
import type { NameIn } from '../../contract/proto-fields.ts'
import { newId } from '../ids.ts'
import type { PageEnd } from '../page-token.ts'
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

export type ResponseClass = NameIn<typeof proto.ResponseClass>
export type AttemptPhase = NameIn<typeof proto.AttemptPhase>
/** Only these fixed values are stored, so that no raw error or address is exposed. */
export type FailureReason = NameIn<typeof proto.FailureReason>

export type AttemptFacts =
  | { status: number; retryAfterMs?: number | undefined; text?: string }
  | { reason: FailureReason; phase?: AttemptPhase | undefined }

export interface AttemptOutcome {
  status: Extract<DeliveryStatus, 'accepted' | 'failed' | 'retry_scheduled' | 'dead_lettered'>
  responseClass: ResponseClass
  responseStatus?: number
  /** Beginning of the destination's response, if the request was not accepted. */
  responseText?: string
  failureReason?: FailureReason
  failurePhase?: AttemptPhase
  durationMs?: number
  claimId?: string
}

interface AttemptIds {
  attemptId: string
  correlationId: string
}

/** The number of an attempt is its position in the list. The latest one has the status of its delivery. */
export interface DeliveryAttempt extends AttemptIds {
  /** Whether a person or service requested the attempt. */
  manual: boolean
  /** Name of the requester; absent for automatic attempts. */
  requestedBy?: string
  createdAt: Date
  updatedAt: Date
  outcome?: AttemptOutcome
}

export const newAttemptIds = (): AttemptIds => ({ attemptId: newId('att'), correlationId: randomUUID() })

export const newAttempt = (
  at: Date,
  more: Pick<DeliveryAttempt, 'manual' | 'requestedBy' | 'outcome'>,
): DeliveryAttempt => ({ ...newAttemptIds(), createdAt: at, updatedAt: at, ...more })

export interface DeliveryOperation {
  /** Workspace, route and idempotency key of the request. Unique over all deliveries. */
  key: string
  inputHash: string
  attemptId: string
}

export interface DeliveryClaim {
  claimId: string
  workerId: string
  at: Date
  /** Time at which the subscription was read. If it was changed later, an answer does not disable it. */
  knownAt: Date
  /** The previous claim expired without a result. */
  tookOver?: boolean
}

/** What an attempt means for its subscription. */
export interface Fault {
  kind: 'rejected_auth' | 'gone' | 'not_found' | 'dead_lettered'
  attemptId: string
  sentAt: Date
}

export type PendingFault = Fault & { deliveryId: string; subscriptionId: string }

export interface DeliveryDocument {
  _id: string
  workspaceId: string
  eventType: DeliveryEventType
  /** What the event is about. The delivery is removed with it. */
  leadId?: string
  conversationId?: string
  /** Sequence of the message whose text the body has. Its withdrawal removes the text. */
  messageSequence?: number
  withdrawnAt?: Date
  subscriptionId: string
  /** Copy of the subscription id. The indexes of the queue begin with it. */
  destination: string
  /** Removed once the delivery is accepted, because it is never sent again. */
  body?: Binary | Uint8Array
  status: DeliveryStatus
  attempts: DeliveryAttempt[]
  next?: AttemptIds
  operations: DeliveryOperation[]
  createdAt: Date
  updatedAt: Date
  requestedAt?: Date
  /**
   * Time at which a worker must act: now, at the next retry, or when the lease expires. Absent otherwise,
   * which keeps the indexes of the queue small.
   */
  dueAt?: Date
  /** Set while the delivery is paused (status `held`): the `dueAt` that it had before. */
  heldDueAt?: Date
  claim?: DeliveryClaim
  /** Id of the last claim whose worker returned the delivery unsent, to recognise a repeat. */
  releasedClaimId?: string
  verdict?: Fault
  deleteAt?: Date
  traceparent?: string
  /** Set by the write that ends the delivery, until the feed has the entries of the end. */
  unannounced?: true
  /** Number of attempts whose ends have entries in the feed. */
  announcedAttempts?: number
  workflow?: Workflow
  handoff?: Handoff
}

export type Delivery = Omit<DeliveryDocument, '_id' | 'body'> & { deliveryId: string }
export type NewDelivery = Delivery & { body?: Uint8Array }

export const toDelivery = ({ _id: deliveryId, ...rest }: DeliveryDocument): Delivery => ({ deliveryId, ...rest })

export function bytesOf(body: DeliveryDocument['body']) {
  if (body === undefined) return new Uint8Array()
  return body instanceof Uint8Array ? body : body.value()
}

export interface DeliveryQuery {
  workspaceId: string
  subscriptionId?: string
  leadId?: string
  statuses?: DeliveryStatus[]
  since?: Date
  until?: Date
  before?: PageEnd | undefined
}

/**
 * Ends a claim: stores the outcome of an attempt, or returns the delivery to the queue. Applies only while
 * the delivery still has this claim.
 */
export type Settlement = { deliveryId: string; claimId: string; at: Date } & (
  | {
      kind: 'outcome'
      attemptId: string
      /** Position of the attempt, which must be the last one. */
      index: number
      outcome: AttemptOutcome
      fault?: Fault
      retry?: AttemptIds & { dueAt: Date }
      deleteAt?: Date
    }
  | { kind: 'release' }
)
export type Ended = Extract<Settlement, { kind: 'outcome' }>

/** Queries need this condition to use the indexes that begin with the destination. */
export const anyDestination = { destination: { $gt: '' } }
